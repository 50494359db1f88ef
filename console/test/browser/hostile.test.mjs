// The page in front of a real gateway and the hostile servers of this repository: lists, results and ends that mean no good.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, start } from './harness.mjs';
import { hostile } from './hostile_program.mjs';
import { wharf } from './wharf.mjs';

/** Servers that misbehave when they are listed, and how the page shows them. */
const LISTS = ['many_tools', 'schema_regex_bomb', 'schema_recursive', 'schema_ref_http', 'schema_1mb', 'name_rtl', 'name_control', 'name_300', 'desc_invisible', 'desc_ansi', 'desc_injection', 'desc_1mb', 'icon_javascript', 'annotations_lie', 'list_error', 'tools_not_array', 'cursor_infinite'];
/** Servers that misbehave when `echo` is called, and what the page says of it. */
const CALLS = { is_error: "the tool's own error", empty_content: 'success', unknown_block: 'success', bad_base64: 'success', block_scalar: /success|failed/, content_not_array: /success|failed/, structured_violates_schema: /success|failed/, resource_link_file: 'success', result_8m: 'success', rpc_32603: 'failed', rpc_code_string: 'failed', rpc_error_text: 'failed', result_type_unknown: 'failed', silent: 'failed', notif_flood_then_reply: 'success', exit_mid_call: 'failed' };
const nameOf = (mode) => mode.replaceAll('_', '-');

let servers, gateway, chromium, page;
before(async () => {
  servers = Object.fromEntries(await Promise.all([...LISTS, ...Object.keys(CALLS)].map(async (mode) => [nameOf(mode), await hostile(mode, '--size', '2000')])));
  gateway = await wharf(Object.fromEntries(Object.entries(servers).map(([name, it]) => [name, it.url])));
  chromium = await start();
  chromium.expect(/status of (401|404|409|422|429|502|503|504)/);
  page = await chromium.open(gateway.url + (await gateway.ticket()));
  await page.getByText('operator').first().waitFor();
});
after(async () => {
  await chromium.close();
  await gateway.stop();
  for (const each of Object.values(servers)) each.close();
});

test('lists that mean no good are shown, inert and accessible', async () => {
  await page.goto(`${gateway.url}/#/servers`);
  for (const mode of LISTS) await page.getByRole('link', { name: nameOf(mode), exact: true }).waitFor();
  await page.waitForFunction(() => !/connecting|startup/.test(document.querySelector('main table')?.innerText ?? 'connecting'));
  await accessible(page, 'hostile servers');
  for (const mode of LISTS) {
    await page.goto(`${gateway.url}/#/servers/${nameOf(mode)}`);
    await page.getByRole('heading', { level: 1, name: nameOf(mode) }).waitFor();
    assert.ok((await page.evaluate(() => document.querySelectorAll('*').length)) < 3_000, mode);
  }
  const { items } = await (await gateway.api('/api/v1/tools?limit=500')).json();
  const first = new Map(items.toReversed().map((it) => [it.source, it]));
  for (const mode of LISTS) {
    const tool = items.find((it) => it.source === nameOf(mode) && it.wire_name !== 'echo') ?? first.get(nameOf(mode));
    if (!tool) continue;
    await page.goto(`${gateway.url}/#/tools/${encodeURIComponent(tool.tool_id)}`);
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
    await accessible(page, `a tool of ${mode}`);
    const { text, elements } = await page.evaluate(() => ({ text: document.body.innerText, elements: document.querySelectorAll('*').length }));
    assert.ok(elements < 3_000, `${mode}: ${elements} elements`);
    assert.ok(!/[\u0000-\u0008\u200b\u202e]/.test(text), `${mode} shows characters that are not seen`);
  }
});

for (const [mode, expected] of Object.entries(CALLS)) {
  test(`a server that ${mode} leaves the page usable`, async () => {
    await page.goto(`${gateway.url}/#/tools/${nameOf(mode)}:echo`);
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    await page.locator('.form textarea').fill('{"nonce":"seven","text":"seven"}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const ending = page.getByRole('region', { name: 'Result' }).getByRole('status').filter({ hasText: expected });
    await dialog.or(ending).first().waitFor();
    if (await dialog.count()) await dialog.getByRole('button', { name: 'Call it' }).click();
    await ending.waitFor();
    assert.ok((await page.evaluate(() => document.querySelectorAll('*').length)) < 3_000);
    assert.equal(await page.locator('a[href^="javascript"], a[href^="file"]').count(), 0);
    await accessible(page, `the result of ${mode}`);
  });
}
