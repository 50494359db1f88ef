// URI templates of resources (RFC 6570, as far as MCP servers use them): which variables there are, and filling them in.

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;
const nameOf = (text: string): string => text.replace(/[*]$|:\d+$/, '').trim();

export const variablesOf = (template: string): string[] => [...new Set([...template.matchAll(EXPRESSION)].flatMap(([, , list]) => list!.split(',').map(nameOf)))].filter(Boolean);

export function fillIn(template: string, values: Record<string, string>): string {
  return template.replace(EXPRESSION, (_, operator: string, list: string) => {
    const names = list.split(',').map(nameOf).filter((name) => values[name]);
    if (!names.length) return '';
    const encode = (text: string) => (operator === '+' || operator === '#' ? encodeURI(text) : encodeURIComponent(text));
    const named = operator === '?' || operator === '&' || operator === ';';
    const parts = names.map((name) => (named ? `${name}=${encode(values[name]!)}` : encode(values[name]!)));
    const first = operator === '+' ? '' : operator;
    return first + parts.join(operator === '?' ? '&' : named || operator === '/' || operator === '.' ? operator : ',');
  });
}
