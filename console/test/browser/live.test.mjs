import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../gateway.mjs';
import { accessible, start, until } from './harness.mjs';

test('eight tabs work on one stream, also after the first is closed', async () => {
  const gateway = await serve({ open: true, rate: 20, count: 1e9 });
  const chromium = await start();
  const pages = [];
  for (let at = 0; at < 8; at++) pages.push(await chromium.open(`${gateway.url}/#/calls`));
  for (const page of pages) await page.getByText(/[1-9]\d* calls? since/).waitFor();
  const { streams } = gateway.state;
  await until(() => streams.size === 1, 'one tab reads');
  const [ofFirst] = streams;
  await pages[0].close();
  // A connection ends a moment after its tab.
  await until(() => streams.size === 1 && !streams.has(ofFirst), 'another tab reads');
  const count = async (page) => Number(/([\d,]+) calls? since/.exec(await page.locator('main').innerText())[1].replaceAll(',', ''));
  const before = await count(pages[5]);
  await pages[5].waitForFunction((old) => Number(/([\d,]+) calls? since/.exec(document.body.innerText)?.[1].replaceAll(',', '')) > old, before);
  await chromium.close();
  await gateway.close();
});

test('a gateway that was away is read again, and no call is missing after', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  chromium.expect(/ERR_|Failed to load/);
  const page = await chromium.open(`${gateway.url}/#/calls`);
  await page.getByText('No calls yet').waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  gateway.state.away = true;
  gateway.drop();
  // A list that was being read says the same, so only the line above the page counts.
  const banner = page.locator('.banner').getByText('The gateway cannot be reached');
  await banner.waitFor();
  gateway.state.calls.push({ request_id: 'while-away', tool_name: 'find', source: 'search', parameters: {}, execution_start: new Date().toISOString(), execution_duration: 0.01, status: 'success' });
  gateway.state.away = false;
  gateway.state.startedAt = new Date().toISOString();
  await banner.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'find' }).waitFor();
  await chromium.close();
  await gateway.close();
});

test('calls are opened, compared and opened in the form again', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const call = (id, parameters, more = {}) => ({ request_id: id, tool_name: 'create_todo', wire_name: 'create_todo', source: 'todo', parameters, execution_start: new Date().toISOString(), execution_duration: 0.02, status: 'success', via: 'mcp', principal: 'operator', stages_ms: { queue: 1, connect: 4, call: 15 }, result: { content: [{ type: 'text', text: parameters.title }] }, ...more });
  gateway.state.calls.push(call('a1', { title: 'Milk', priority: 1 }), call('b2', { title: 'Bread', tags: ['x'] }, { status: 'failure', error: 'the server closed the connection', error_type: 'MCPConnectionError', hint: 'restart it', sent: 'unknown', phase: 'call' }));
  const page = await chromium.open(`${gateway.url}/#/calls`);
  await page.getByRole('grid', { name: 'Calls' }).focus();
  for (const key of ['x', 'ArrowDown', 'x', 'd']) await page.keyboard.press(key);
  await page.getByText('5 differences').waitFor();
  await page.getByRole('heading', { name: 'Error' }).waitFor();
  await accessible(page, 'compare');
  await page.goto(`${gateway.url}/#/calls/b2`);
  await page.getByText('it may have run').waitFor();
  await accessible(page, 'a failed call');
  await page.getByRole('button', { name: 'Open in form' }).click();
  await page.waitForFunction(() => document.querySelector('form input')?.value === 'Bread');
  await page.goto(`${gateway.url}/#/calls?status=failure`);
  await page.reload();
  assert.equal(await page.getByLabel('Status').inputValue(), 'failure');
  await chromium.close();
  await gateway.close();
});

test('calls that failed are never skipped, however many there are at once', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const page = await chromium.open(`${gateway.url}/#/calls?status=failure`);
  await page.getByText('live', { exact: true }).waitFor();
  // More than a page keeps for one frame: one in fifty of them fails.
  for (let batch = 0; batch < 40; batch++) gateway.tell('batch', { events: Array.from({ length: 200 }, (_, at) => gateway.call(batch * 200 + at)), skipped: { call: 800 } });
  await page.getByText('40,000 calls since').waitFor();
  await page.locator('[role="grid"][aria-rowcount="160"]').waitFor();
  await chromium.close();
  await gateway.close();
});

/** Makes a page believe that it is hidden or seen. */
const hide = (page, hidden) => page.evaluate((value) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
  document.dispatchEvent(new Event('visibilitychange'));
}, hidden);

test('a hidden tab hands the stream over to one that is seen, and no call is missing', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const first = await chromium.open(`${gateway.url}/#/calls`);
  await first.getByText('live', { exact: true }).waitFor();
  const second = await chromium.open(`${gateway.url}/#/calls`);
  await second.getByText('live', { exact: true }).waitFor();
  const { streams } = gateway.state;
  await until(() => streams.size === 1, 'one tab reads');
  // A request counts before its stream is open, so the streams themselves are compared.
  const [ofFirst] = streams;
  await hide(first, true);
  await until(() => streams.size === 1 && !streams.has(ofFirst), 'the second tab reads');
  // From the cache the second tab would share the stream that the first has just left.
  assert.deepEqual(new Set(gateway.state.cacheModes), new Set(['no-cache']));
  const [ofSecond] = streams;
  gateway.tell('batch', { events: [gateway.call(1, { request_id: 'seen-by-both' })], skipped: {} });
  for (const page of [first, second]) await page.locator('[href="#/calls/seen-by-both"]').waitFor();
  // Back again: the one that reads stays the one that reads.
  await hide(first, false);
  gateway.tell('batch', { events: [gateway.call(2, { request_id: 'after-that' })], skipped: {} });
  for (const page of [first, second]) await page.locator('[href="#/calls/after-that"]').waitFor();
  await second.close();
  await until(() => streams.size === 1 && !streams.has(ofSecond), 'the first tab reads again');
  await chromium.close();
  await gateway.close();
});

test('with no tab seen the stream is left after a minute, and read again when one is', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const page = await chromium.open('about:blank', gateway.url);
  await page.clock.install();
  await page.goto(`${gateway.url}/#/calls`);
  await page.getByText('live', { exact: true }).waitFor();
  await hide(page, true);
  await page.clock.runFor(30_000);
  assert.equal(gateway.state.streams.size, 1, 'not yet');
  await page.clock.runFor(31_000);
  await until(() => gateway.state.streams.size === 0, 'the stream is left');
  await page.clock.runFor(60_000);
  assert.equal(gateway.state.streams.size, 0, 'and not read while hidden');
  await hide(page, false);
  await until(() => gateway.state.streams.size === 1, 'the stream is read again');
  await chromium.close();
  await gateway.close();
});

test('where the browser has no locks, each tab that is seen reads for itself', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  await chromium.browser.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { get: () => undefined }));
  const pages = [await chromium.open(`${gateway.url}/#/calls`), await chromium.open(`${gateway.url}/#/calls`)];
  for (const page of pages) await page.getByText('live', { exact: true }).waitFor();
  await until(() => gateway.state.streams.size === 2, 'both read');
  gateway.tell('batch', { events: [gateway.call(1, { request_id: 'told-once' })], skipped: {} });
  for (const page of pages) await page.getByText('1 call since').waitFor();
  await hide(pages[0], true);
  await until(() => gateway.state.streams.size === 1, 'a hidden tab leaves its stream');
  await chromium.close();
  await gateway.close();
});

test('a call is compared with another one of its tool, and what failed is compared too', async () => {
  const gateway = await serve({ open: true, failures: true });
  const chromium = await start();
  const page = await chromium.open(`${gateway.url}/#/calls/f1`);
  await page.getByRole('link', { name: 'Compare with…' }).click();
  await page.getByText('Mark a second call to compare with f1').waitFor();
  await page.getByLabel('Mark f2 for comparing').check();
  await page.getByRole('link', { name: 'Compare', exact: true }).click();
  // Neither has a result, and that is no reason to call them the same.
  await page.getByText('3 differences').waitFor();
  await page.getByText('did not answer within 60 s').waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Result' }).count(), 0);
  await chromium.close();
  await gateway.close();
});

test('a long line of a log is read whole, without a mouse', async () => {
  const text = `Traceback ${'x'.repeat(3_000)} the end`;
  const line = { at: new Date().toISOString(), source: 'files', kind: 'stderr', level: null, text };
  const gateway = await serve({ open: true, overrides: { lists: { '/api/v1/logs': () => [line] } } });
  const chromium = await start();
  const page = await chromium.open(`${gateway.url}/#/logs`);
  await page.getByRole('grid', { name: 'Log lines' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByText('the end').waitFor();
  await accessible(page, 'a line of a log');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await chromium.close();
  await gateway.close();
});

test('a server whose breaker is open says which call failed last, and what to do', async () => {
  const gateway = await serve({ open: true, failures: true });
  const chromium = await start();
  const page = await chromium.open(`${gateway.url}/#/servers/search`);
  const box = page.getByRole('status').filter({ hasText: 'Calls fail at once' });
  await box.getByText('5 calls failed in a row').waitFor();
  await box.getByText('connection refused').waitFor();
  await box.getByText('check that the server is running').waitFor();
  await box.getByRole('link', { name: 'find' }).click();
  await page.waitForFunction(() => location.hash === '#/calls/f1');
  await chromium.close();
  await gateway.close();
});
