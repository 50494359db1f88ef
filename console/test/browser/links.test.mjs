// Addresses: each page is found again by its address, follows it when it changes, and tells no server what is in it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../gateway.mjs';
import { start } from './harness.mjs';

const PAGES = { '#/': 'Overview', '#/servers?q=o': 'Servers', '#/servers/weather?tab=definition': 'weather', '#/servers/add?as=import': 'Add a server', '#/tools?q=todo&source=todo': 'Tools', '#/tools/files:everything': 'everything', '#/tools/search:find/history': 'History of search:find', '#/prompts/todo__plan_my_day': 'Prompts', '#/resources?uri=todo%3A%2F%2Flist': 'Resources', '#/calls?status=failure&source=search&via=mcp': 'Calls', '#/calls/f1': 'find', '#/calls/f1..f2': 'Compare two calls', '#/logs?source=search&level=warning&q=old': 'Logs', '#/metrics?window=3600': 'Metrics', '#/chat/c1': 'Chat', '#/agent?tab=check': 'Agent', '#/settings': 'Settings' };
/** A sample of every plane and of what is special in addresses, JSON and markup. */
const UNICODE = `${String.fromCodePoint(...Array.from({ length: 0x10ffff / 0x101 }, (_, at) => at * 0x101).filter((it) => it < 0xd800 || it > 0xdfff))} #?&=%+/\\"'<>\u0000\u2028\u202e\u{1F6A2}`;

test('every page is reloaded from its address, and follows it when it changes while open', async () => {
  const gateway = await serve({ open: true, failures: true });
  const chromium = await start();
  const page = await chromium.open(gateway.url);
  const heading = (name) => page.getByRole('heading', { level: 1, name }).first().waitFor();
  for (const [path, name] of Object.entries(PAGES)) {
    await page.evaluate((to) => { location.hash = to; }, path);
    await heading(name);
    await page.reload();
    await heading(name);
    assert.equal(new URL(page.url()).hash, path, 'the address stays');
    await page.waitForFunction(() => /wharf$/.test(document.title));
  }
  await page.goBack();
  await heading('Agent');
  await page.goForward();
  await heading('Settings');
  assert.ok(gateway.state.requests.every((it) => !it.includes('#')));
  await chromium.close();
  await gateway.close();
});

test('arguments with all of Unicode come back from an address, and are in no request line', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const args = { title: UNICODE, place: { city: 'Bern' } };
  const page = await chromium.open(`${gateway.url}/#/tools/files:everything`);
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.locator('.form textarea').fill(JSON.stringify(args));
  const sent = () => gateway.state.bodies.filter((it) => it.includes('"tools/call"')).map((it) => JSON.parse(it).params.arguments);
  for (let times = 1; times <= 2; times++) {
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('success', { exact: true }).waitFor();
    assert.deepEqual(sent().at(-1), args);
    assert.equal(sent().length, times);
    await page.waitForFunction(() => location.hash.includes('arg'));
    await page.reload();
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  }
  assert.ok(gateway.state.requests.every((it) => !/Bern|arg[sz]=/.test(it)), 'nothing of it was sent in an address');
  await chromium.close();
  await gateway.close();
});

test('a read that got no answer is tried once more', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  chromium.expect(/ERR_CONNECTION_FAILED/);
  const page = await chromium.open('about:blank', gateway.url);
  let refused = 0;
  await page.route('**/api/v1/tokens*', (route) => (refused++ === 0 ? route.abort('connectionfailed') : route.continue()));
  await page.goto(`${gateway.url}/#/settings`);
  await page.getByRole('row', { name: 'ci caller never' }).waitFor();
  assert.equal(await page.locator('main [role="alert"]').count(), 0);
  await chromium.close();
  await gateway.close();
});
