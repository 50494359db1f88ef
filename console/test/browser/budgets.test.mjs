// The budgets of the page: CPU while it watches, first paint, interaction, big results, and memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../gateway.mjs';
import { start } from './harness.mjs';
import { bestOf, counters, slowness } from './measure.mjs';

/** The page has to paint within 200 ms on two idle cores. How idle these are nobody knows, so the CPU until then is limited, not the time. */
const PAINT_CPU_MS = 150;
const CPU_MS_PER_SECOND = 300, BATCH_MS = 40, INTERACTION_MS = 100, RESULT_MS = 1_500, HEAP_MB = 40, MAX_ROWS = 60;
const TRIES = 8;
const told = (page, count) => page.waitForFunction((most) => Number(/([\d,]+) calls? since/.exec(document.body.innerText)?.[1].replaceAll(',', '')) >= most, count);

async function watch(options) {
  const gateway = await serve({ open: true, ...options });
  const chromium = await start();
  const idle = await chromium.open('about:blank', gateway.url);
  const page = await chromium.open(`${gateway.url}/#/calls`);
  await page.getByText('live', { exact: true }).waitFor();
  return { gateway, page, idle, meter: await counters(page), async close() { await chromium.close(); await gateway.close(); } };
}

for (const [rate, count] of [[1_000, 10_000], [10_000, 60_000]]) {
  test(`${count} calls at ${rate} a second stay cheap to watch`, async () => {
    const { gateway, page, idle, meter, close } = await watch({ rate, count: 1e9 });
    await told(page, rate * 3);
    const [cpu, limit] = await bestOf(TRIES, async () => {
      const slower = await slowness(idle);
      const started = performance.now();
      const used = await meter.cpuOf(() => page.waitForTimeout(3_000));
      return [(used * 1_000) / (performance.now() - started), CPU_MS_PER_SECOND * slower.cpu];
    });
    console.log(`${rate} calls/s: ${cpu.toFixed(0)} ms CPU per second of ${limit.toFixed(0)}`);
    assert.ok(cpu <= limit, `${cpu} ms of CPU per second; the limit is ${limit}`);
    await told(page, count);
    assert.ok((await page.locator('[role="row"]').count()) <= MAX_ROWS);
    assert.ok(gateway.state.sent >= count);
    await close();
  });
}

test('one batch of 200 calls is shown within its budget when the list is full', async () => {
  const { gateway, page, idle, meter, close } = await watch({});
  let number = 0;
  const batch = () => gateway.tell('batch', { events: Array.from({ length: 200 }, () => gateway.call(++number)), skipped: {} });
  for (let at = 0; at < 50; at++) { batch(); if (at % 5 === 4) await told(page, number); }
  const [cpu, limit] = await bestOf(TRIES * 2, async () => {
    const { cpu: slower } = await slowness(idle);
    const used = await meter.cpuOf(async () => { batch(); await told(page, number); });
    return [used, BATCH_MS * slower];
  });
  console.log(`one batch: ${cpu.toFixed(0)} ms CPU of ${limit.toFixed(0)}`);
  assert.ok(cpu <= limit, `${cpu} ms for one batch; the limit is ${limit}`);
  await close();
});

test('the heap after an hour at a thousand calls a second stays small', async () => {
  const calls = Number(process.env.CALLS ?? 120_000), hour = 3_600_000;
  const { gateway, page, meter, close } = await watch({});
  let number = 0;
  async function feed(count) {
    for (const end = number + count; number < end;) {
      for (let batch = 0; batch < 5; batch++) gateway.tell('batch', { events: Array.from({ length: 200 }, () => gateway.call(++number)), skipped: {} });
      await told(page, number);
    }
  }
  // The lists of the page are full after 10,000 calls; what grows afterwards grows for ever.
  await feed(30_000);
  const before = await meter.heap();
  await feed(calls);
  const after = await meter.heap();
  const grown = Math.max(0, after - before) / calls;
  const expected = after + grown * Math.max(0, hour - calls);
  const { nodes } = await meter.read();
  console.log(`heap ${before.toFixed(1)} MB after 30,000 calls, ${after.toFixed(1)} MB after ${number.toLocaleString('en-US')}: ${expected.toFixed(1)} MB after an hour; ${nodes} nodes`);
  assert.ok(expected <= HEAP_MB, `${expected} MB after an hour`);
  await close();
});

test('the first paint comes quickly, and an interaction is answered quickly', async () => {
  const blank = ({ response }) => { response.writeHead(200, { 'content-type': 'text/html' }); response.end('<!doctype html><link rel="icon" href="data:,"><p>wharf'); };
  const gateway = await serve({ open: true, overrides: { '/blank': blank } });
  const chromium = await start();
  const idle = await chromium.open('about:blank', gateway.url);
  async function paintOf(path) {
    const page = await chromium.open('about:blank', gateway.url);
    await (await page.context().newCDPSession(page)).send('Network.setCacheDisabled', { cacheDisabled: true });
    const meter = await counters(page);
    await page.goto(gateway.url + path);
    const wall = await (await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime)).jsonValue();
    const { cpu } = await meter.read();
    await page.close();
    return { wall, cpu };
  }
  const [paint, paintLimit] = await bestOf(TRIES, async () => {
    const { cpu: slower } = await slowness(idle);
    const any = await paintOf('/blank'), ours = await paintOf('/#/servers');
    console.log(`first contentful paint after ${ours.wall.toFixed(0)} ms and ${ours.cpu.toFixed(0)} ms CPU, of an empty page after ${any.wall.toFixed(0)} and ${any.cpu.toFixed(0)}`);
    return [ours.cpu, PAINT_CPU_MS * slower];
  });
  assert.ok(paint <= paintLimit, `${paint} ms of CPU until the first paint; the limit is ${paintLimit}`);

  const page = await chromium.open(`${gateway.url}/#/tools`);
  const meter = await counters(page);
  await page.getByText('11 tools of').waitFor();
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  const interactions = {
    'a key in a list': async () => { await page.getByRole('grid', { name: 'Tools' }).focus(); await page.keyboard.press('j'); },
    'typing in a search': async () => { await page.getByLabel('Search tools').fill(`l${Math.random()}`.slice(0, 2)); },
    'opening a tool': async () => { await page.goto(`${gateway.url}/#/tools`); await page.getByRole('link', { name: 'everything' }).click(); },
    'opening a page': async () => { await page.getByRole('link', { name: 'Servers' }).first().click(); },
  };
  for (const [name, act] of Object.entries(interactions)) {
    const [cpu, limit] = await bestOf(TRIES, async () => {
      await page.goto(`${gateway.url}/#/tools`);
      await settled();
      const { cpu: slower } = await slowness(idle);
      return [await meter.cpuOf(async () => { await act(); await settled(); }), INTERACTION_MS * slower];
    });
    console.log(`${name}: ${cpu.toFixed(0)} ms CPU of ${limit.toFixed(0)}`);
    assert.ok(cpu <= limit, `${name}: ${cpu} ms; the limit is ${limit}`);
  }
  await chromium.close();
  await gateway.close();
});

test('ten megabytes and a hundred thousand rows are shown quickly, with few elements', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const idle = await chromium.open('about:blank', gateway.url);
  const page = await chromium.open(`${gateway.url}/#/tools`);
  const meter = await counters(page);
  for (const tool of ['files:huge', 'files:many']) {
    const [cpu, limit] = await bestOf(3, async () => {
      await page.goto(`${gateway.url}/#/tools`);
      const { cpu: slower } = await slowness(idle);
      await page.goto(`${gateway.url}/#/tools/${encodeURIComponent(tool)}`);
      await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
      const used = await meter.cpuOf(async () => { await page.getByRole('button', { name: 'Call', exact: true }).click(); await page.getByText('success', { exact: true }).waitFor(); });
      return [used, RESULT_MS * slower];
    });
    const elements = await page.evaluate(() => document.querySelectorAll('*').length);
    console.log(`${tool}: ${cpu.toFixed(0)} ms CPU of ${limit.toFixed(0)}, ${elements} elements`);
    assert.ok(elements < 1_000, `${tool}: ${elements} elements`);
    assert.ok(cpu <= limit, `${tool}: ${cpu} ms; the limit is ${limit}`);
  }
  await chromium.close();
  await gateway.close();
});
