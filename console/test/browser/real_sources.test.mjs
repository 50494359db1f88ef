// Registering servers at a real gateway: every form, every format of another client, values given later, and two editors.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { serveMcp } from '../servers/mcp_server.mjs';
import { accessible, start } from './harness.mjs';
import { wharf } from './wharf.mjs';

const PLUGIN = { name: 'notes', version: '1.0.0', packages: [{ transport_type: 'stdio', runtime: 'node', command: ['server.mjs'], environment_variables: [{ name: 'NOTES_TOKEN', required: true, secret: true }] }] };
/** Answers as little as a server can; its one tool says whether it knows the secret. */
const SERVER = `
import { createInterface } from 'node:readline';
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const results = { initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } }, 'tools/list': { tools: [{ name: 'read', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }] }, 'tools/call': { content: [{ type: 'text', text: 'knows ' + (process.env.NOTES_TOKEN ?? '').length }] } };
  const result = results[method];
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no such method' } }) }));
});
`;

let server, gateway, chromium, page, folder;
before(async () => {
  server = await serveMcp('modern');
  gateway = await wharf({}, { settings: (home) => { folder = join(home, 'plugins', 'notes'); mkdirSync(folder, { recursive: true, mode: 0o755 }); writeFileSync(join(folder, 'plugin.json'), JSON.stringify(PLUGIN), { mode: 0o644 }); writeFileSync(join(folder, 'server.mjs'), SERVER, { mode: 0o644 }); return `[grants]\nprocesses_over_rest = true\nplugin_roots = ["${join(home, 'plugins')}"]\n`; } });
  chromium = await start();
  chromium.expect(/status of (400|401|404|409|502|503)/);
  page = await chromium.open(gateway.url + (await gateway.ticket()));
  await page.getByText('operator').first().waitFor();
});
after(async () => {
  await chromium.close();
  await gateway.stop();
  await server.close();
});
const open = (path) => page.goto(`${gateway.url}/${path}`);
async function remove(name) {
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill(name);
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'Servers', level: 1 }).waitFor();
  await page.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' });
}

test('what the gateway refuses is said at its field', async () => {
  await open('#/servers/add');
  await page.getByRole('textbox', { name: 'Name' }).fill('far');
  await page.getByRole('textbox', { name: 'Address' }).fill('http://169.254.169.254/mcp');
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByRole('textbox', { name: 'Address' }).and(page.locator('[aria-invalid="true"]')).waitFor();
});

test('a plugin waits for its secret, gets it later, runs, and is removed', async () => {
  await open('#/servers/add?as=plugin');
  await page.getByRole('textbox', { name: 'Name' }).fill('notes');
  await page.getByRole('textbox', { name: 'Folder' }).fill(folder);
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByText('notes is registered').waitFor();
  await page.getByText('It starts when its values are there.').waitFor();
  await page.getByRole('link', { name: 'Open it' }).click();
  await page.getByText('A value is missing').waitFor();
  await accessible(page, 'a server that waits for a value');
  await page.getByRole('button', { name: 'Change' }).click();
  await page.getByLabel('Value 1').fill('a secret of nine');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('A value is missing').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Refresh tools' }).click();
  await page.getByRole('link', { name: 'read', exact: true }).click();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('knows 16').waitFor();
  assert.ok(!gateway.log().includes('a secret of nine'));
  await page.goBack();
  await page.getByRole('heading', { name: 'notes', level: 1 }).waitFor();
  await remove('notes');
});

test('an entry of agent.yaml is registered as JSON', async () => {
  await open('#/servers/add?as=entry');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.locator('form textarea').first().fill(JSON.stringify({ name: 'entry', type: 'mcp', server: 'entry', transport: 'http', url: server.url }));
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByText('entry is registered').waitFor();
  await page.getByRole('link', { name: 'Open it' }).click();
  await remove('entry');
});

const FORMATS = {
  'Claude and Cursor': (name, url) => ({ mcpServers: { [name]: { url, headers: { Authorization: 'Bearer given-elsewhere' } } } }),
  'VS Code': (name, url) => ({ servers: { [name]: { type: 'http', url } } }),
  'the official registry': (name, url) => ({ $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json', name: `io.example/${name}`, description: 'd', version: '1.0.0', remotes: [{ type: 'streamable-http', url }] }),
  'the tools provider': (name) => ({ name, version: '1.0.0', description: 'd', packages: [{ transport_type: 'stdio', runtime: 'npx', command: ['@example/server'] }] }),
};
for (const [format, text] of Object.entries(FORMATS)) {
  test(`servers are imported from the format of ${format}`, async () => {
    const name = `from-${format.toLowerCase().replaceAll(' ', '-')}`;
    await open('#/servers/add?as=import');
    await page.getByLabel('Configuration to import').fill(JSON.stringify(text(name, server.url)));
    await page.getByRole('button', { name: 'Look at it' }).click();
    await page.getByText('One server was found').waitFor();
    await accessible(page, `import from ${format}`);
    assert.ok(!(await page.locator('main section').allInnerTexts()).join().includes('given-elsewhere'), 'values of another client are not shown');
    const missing = page.getByLabel(/is missing/);
    if (await missing.count()) await missing.first().fill('given-here');
    const button = page.getByRole('button', { name: 'Register' });
    await button.waitFor();
    if (await button.isDisabled()) { await page.getByText('May not be registered').waitFor(); return; }
    if (format === 'the tools provider') return;
    await button.click();
    await page.getByRole('link', { name: 'Registered, open it' }).click();
    await page.getByRole('button', { name: 'Remove' }).waitFor();
    const heading = await page.getByRole('heading', { level: 1 }).innerText();
    await remove(heading.split('\n')[0].trim());
  });
}

test('the second of two editors is told that the server has changed', async () => {
  const made = await gateway.api('/api/v1/sources', { method: 'POST', body: JSON.stringify({ name: 'shared', mcp_server_url: server.url, source_type: 'mcp' }) });
  assert.equal(made.status, 201);
  const { id } = await made.json();
  await open(`#/servers/${id}`);
  const other = await chromium.open(`${gateway.url}/#/servers/${id}`);
  for (const [at, each] of [page, other].entries()) {
    await each.getByRole('button', { name: 'Change' }).click();
    await each.getByLabel('Description').fill(`Words of editor ${at}`);
  }
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await other.getByRole('button', { name: 'Save' }).click();
  await other.getByText('Somebody else changed this server').waitFor();
  await accessible(other, 'a change that was refused');
  const { description } = await (await gateway.api(`/api/v1/sources/${id}`)).json();
  assert.equal(description, 'Words of editor 0');
  await other.close();
});
