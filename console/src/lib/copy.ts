// The same call in other words: a link, curl, `wharf call`, Python, TypeScript, JSON-RPC. None of them has the token in it.

export interface Copied { toolId: string; name: string; args: Record<string, unknown>; origin: string }

const shell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const indent = (text: string, by: number): string => text.replaceAll('\n', `\n${' '.repeat(by)}`);

/** JSON as a Python literal. */
export function python(value: unknown, by = 0): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
  if (typeof value === 'number') return String(value);
  const pad = ' '.repeat(by + 4), end = ' '.repeat(by);
  if (Array.isArray(value)) return value.length ? `[\n${value.map((it) => `${pad}${python(it, by + 4)}`).join(',\n')},\n${end}]` : '[]';
  const entries = Object.entries(value);
  return entries.length ? `{\n${entries.map(([key, it]) => `${pad}${JSON.stringify(key)}: ${python(it, by + 4)}`).join(',\n')},\n${end}}` : '{}';
}

export const copies: Record<string, { label: string; key?: string; text: (it: Copied) => string }> = {
  curl: {
    label: 'curl', key: 'c',
    text: ({ toolId, args, origin }) => `curl -H "Authorization: Bearer $WHARF_TOKEN" -H 'Content-Type: application/json' \\\n  ${shell(`${origin}/api/v1/tools/${encodeURIComponent(toolId)}/call`)} \\\n  -d ${shell(JSON.stringify({ arguments: args }))}`,
  },
  wharf: { label: 'wharf call', key: 'w', text: ({ toolId, args }) => `wharf call ${shell(toolId)}${Object.keys(args).length ? ` ${shell(JSON.stringify(args))}` : ''}` },
  python: {
    label: 'Python', key: 'p',
    text: ({ toolId, args, origin }) => `import json, os, urllib.request\n\nrequest = urllib.request.Request(\n    ${JSON.stringify(`${origin}/api/v1/tools/${encodeURIComponent(toolId)}/call`)},\n    headers={"Authorization": "Bearer " + os.environ["WHARF_TOKEN"], "Content-Type": "application/json"},\n    data=json.dumps({"arguments": ${python(args, 4)}}).encode(),\n)\nwith urllib.request.urlopen(request) as response:\n    print(json.load(response))\n`,
  },
  typescript: {
    label: 'TypeScript',
    text: ({ toolId, args, origin }) => `const response = await fetch(${JSON.stringify(`${origin}/api/v1/tools/${encodeURIComponent(toolId)}/call`)}, {\n  method: 'POST',\n  headers: { Authorization: \`Bearer \${process.env.WHARF_TOKEN}\`, 'Content-Type': 'application/json' },\n  body: JSON.stringify({ arguments: ${indent(JSON.stringify(args, null, 2), 2)} }),\n});\nconsole.log(await response.json());\n`,
  },
  rpc: {
    label: 'JSON-RPC',
    text: ({ name, args }) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }, null, 2),
  },
};
