// Every key of the console, without a mouse.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../gateway.mjs';
import { accessible, start } from './harness.mjs';

const record = (id, at, more = {}) => ({ request_id: id, tool_name: 'create_todo', wire_name: 'create_todo', source: 'todo', parameters: { title: id }, execution_start: new Date(at).toISOString(), execution_duration: 0.02, status: 'success', via: 'mcp', principal: 'ada', sent: 'yes', phase: null, hint: null, definition_hash: null, trace_id: null, stages_ms: { queue: 1, connect: 4, call: 15 }, result: { content: [] }, ...more });

async function open(path, options = {}) {
  const gateway = await serve({ open: true, ...options });
  const chromium = await start({ permissions: ['clipboard-read', 'clipboard-write'] });
  const page = await chromium.open(`${gateway.url}/${path}`);
  return { gateway, page, keys: async (...all) => { for (const key of all) await page.keyboard.press(key); }, close: async () => { await chromium.close(); await gateway.close(); } };
}

test('every page is reached by keys, and the palette finds tools', async () => {
  const { page, keys, gateway, close } = await open('#/');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  for (const [key, title] of [['s', 'Servers'], ['t', 'Tools'], ['p', 'Prompts'], ['r', 'Resources'], ['c', 'Calls'], ['l', 'Logs'], ['m', 'Metrics'], ['a', 'Agent'], ['h', 'Chat'], ['o', 'Overview']]) {
    await keys('g', key);
    await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor();
  }
  await keys('?');
  await page.getByText('mark two calls, compare them').waitFor();
  await accessible(page, 'keys');
  await keys('Escape', 'Control+k');
  await page.keyboard.type('list_to');
  await page.getByRole('option', { name: 'list_todos' }).waitFor();
  await accessible(page, 'palette');
  await keys('Enter');
  await page.getByRole('heading', { name: 'list_todos' }).waitFor();
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  await keys('Control+Enter');
  await page.getByText('success', { exact: true }).waitFor();
  await page.goto(`${gateway.url}/#/tools`);
  await page.getByText('11 tools of').waitFor();
  await keys('/');
  await page.keyboard.type('slow');
  await page.getByText('1 of 11').waitFor();
  // Escape leaves the field; then single keys work again.
  await keys('Escape', 'g', 's');
  await page.getByRole('heading', { name: 'Servers', level: 1 }).waitFor();
  await close();
});

test('rows are walked, opened, marked and compared, and calls leafed through', async () => {
  const { page, gateway, keys, close } = await open('#/servers');
  const now = Date.now();
  gateway.state.calls.push(record('oldest', now - 3_000), record('middle', now - 2_000), record('newest', now - 1_000));
  await page.goto(`${gateway.url}/#/calls`);
  const grid = page.getByRole('grid', { name: 'Calls' });
  await grid.focus();
  for (const [key, row] of [['j', 2], ['ArrowDown', 3], ['k', 2], ['ArrowUp', 1], ['End', 3], ['Home', 1]]) {
    await keys(key);
    await page.locator(`.row.at[aria-rowindex="${row}"]`).waitFor();
  }
  await keys('j', 'Enter');
  await page.waitForFunction(() => location.hash === '#/calls/middle');
  await page.getByText('"middle"').waitFor();
  await keys('[');
  await page.waitForFunction(() => location.hash === '#/calls/oldest');
  // Two keys at once are two steps.
  await page.evaluate(() => { for (let times = 0; times < 2; times++) document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ']', bubbles: true })); });
  await page.waitForFunction(() => location.hash === '#/calls/newest');
  await page.goto(`${gateway.url}/#/calls`);
  await grid.focus();
  await keys('Home', 'x', 'j', 'x', 'd');
  await page.waitForFunction(() => location.hash === '#/calls/newest..middle');
  await page.getByText('1 difference', { exact: true }).waitFor();
  await close();
});

test('space holds the list and lets it go on, and the counting goes on meanwhile', async () => {
  const { page, gateway, keys, close } = await open('#/calls');
  await page.getByText('live', { exact: true }).waitFor();
  const call = (id) => gateway.tell('batch', { events: [gateway.call(1, { request_id: id })], skipped: {} });
  call('before');
  await page.locator('[href="#/calls/before"]').waitFor();
  await page.locator('main').focus();
  await keys('Space');
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  call('meanwhile');
  await page.getByText('2 calls since').waitFor();
  assert.equal(await page.locator('[href="#/calls/meanwhile"]').count(), 0);
  await keys('Space');
  await page.locator('[href="#/calls/meanwhile"]').waitFor();
  await close();
});

test('a call is copied as link, curl, wharf call and Python', async () => {
  const { page, gateway, keys, close } = await open(`#/tools/todo:create_todo?args=${encodeURIComponent('{"title":"Milk"}')}`);
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  await page.locator('main').focus();
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  for (const [key, expected] of [['l', '#/tools/todo%3Acreate_todo?args='], ['c', `curl `], ['w', 'wharf call todo:create_todo'], ['p', 'import ']]) {
    await page.evaluate(() => navigator.clipboard.writeText(''));
    await keys('y', key);
    await page.waitForFunction(async (text) => (await navigator.clipboard.readText()).includes(text), expected);
    const text = await clipboard();
    assert.ok(text.includes('Milk') && !text.includes('ws_'), text);
  }
  assert.ok(gateway.state.requests.every((it) => !it.includes('Milk')));
  await close();
});

test('single keys can be switched off', async () => {
  const { page, gateway, keys, close } = await open('#/settings');
  await page.getByLabel('Keyboard shortcuts of one key').uncheck();
  await page.goto(`${gateway.url}/#/servers`);
  await page.getByRole('heading', { name: 'Servers', level: 1 }).waitFor();
  await page.locator('main').focus();
  await keys('g', 't', '?');
  await keys('Control+k');
  await page.getByRole('combobox').waitFor();
  assert.ok(page.url().endsWith('#/servers'), page.url());
  await close();
});

test('a span of time is entered without a mouse', async () => {
  const { page, keys, close } = await open('#/metrics');
  await page.getByLabel('From').fill('2026-11-18T10:00:00');
  await page.getByLabel('to', { exact: true }).fill('2026-11-18T10:05:00');
  await page.getByRole('button', { name: 'Show calls' }).focus();
  await keys('Enter');
  await page.waitForFunction(() => location.hash.includes('since=2026-11-18T10%3A00') && location.hash.includes('until=2026-11-18T10%3A05'));
  await close();
});

test('a call is made again with the same arguments', async () => {
  const { page, gateway, keys, close } = await open('#/calls');
  gateway.state.calls.push(record('once', Date.now()));
  await page.goto(`${gateway.url}/#/calls/once`);
  await page.getByRole('button', { name: 'Call again' }).focus();
  await keys('Enter');
  await page.getByText('success', { exact: true }).waitFor();
  assert.deepEqual(gateway.state.calls.at(-1).parameters, { title: 'once' });
  assert.equal(gateway.state.calls.length, 2);
  await close();
});
