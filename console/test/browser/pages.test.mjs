// Every page in every state, theme and width: accessible, no wider than the window, and with few elements.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sources } from '../fixtures/world.mjs';
import { serve } from '../gateway.mjs';
import { accessible, start } from './harness.mjs';

const MAX_ELEMENTS = 3_000;
/** Theme, width and zoom. A page at 200 % has half the width. */
const VIEWS = [['light', 1280, 1], ['dark', 1280, 1], ['light', 400, 1], ['dark', 400, 1], ['light', 1280, 2], ['dark', 1280, 2]];
const PAGES = ['#/', '#/prompts', '#/prompts/todo__plan_my_day', '#/resources', '#/resources?uri=todo%3A%2F%2Flist', '#/logs', '#/metrics', '#/tools/search:find/history', '#/servers', '#/servers/weather', '#/servers/github', '#/tools', '#/tools/files:everything', '#/calls', '#/calls/nowhere', '#/calls/f1', '#/calls/f1..f2', '#/chat', '#/chat/c1', '#/agent', '#/agent?tab=check', '#/servers/add', '#/servers/add?as=import', '#/settings', '#/nowhere'];
/** Each page that reads something, and what it says when there is nothing. */
const READERS = { '#/': 'No servers yet', '#/servers': 'No servers yet', '#/servers/weather': 'There is no server weather', '#/tools': 'No tools yet', '#/tools/todo:list_todos': 'There is no tool todo:list_todos', '#/tools/search:find/history': 'No versions were kept', '#/prompts': 'No prompts', '#/resources': 'No resources', '#/calls': 'No calls yet', '#/calls/f1': 'not in the journal', '#/logs': 'No lines yet', '#/metrics': 'No calls in this time', '#/chat': 'No conversations yet', '#/agent': 'No agent file', '#/settings': '' };

async function check(page, name, views) {
  for (const [colorScheme, width, zoom] of views) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width: width / zoom, height: 800 / zoom });
    const view = `${name}, ${colorScheme}, ${width} px, ${zoom * 100} %`;
    await accessible(page, view);
    const { wide, sideways, elements } = await page.evaluate(() => {
      const scrolls = (it) => it.scrollWidth > it.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(it).overflowX);
      const named = (it) => `${it.localName}.${it.className}: ${it.scrollWidth} of ${it.clientWidth} px`;
      return { wide: document.documentElement.scrollWidth - innerWidth, sideways: [...document.querySelectorAll('main *')].filter(scrolls).map(named), elements: document.querySelectorAll('*').length };
    });
    assert.ok(wide <= 0, `${view} is ${wide} px too wide`);
    assert.deepEqual(sideways, [], `${view} scrolls sideways`);
    assert.ok(elements < MAX_ELEMENTS, `${view} has ${elements} elements`);
  }
}
const settled = (page) => page.waitForFunction(() => document.querySelector('main h1, main .empty, main h2') && !document.querySelector('[aria-label="Loading"]'));

for (const zoom of [1, 2]) {
  test(`every page is accessible in both themes, ${zoom === 1 ? 'wide and narrow' : 'at 200 % zoom'}`, async () => {
    const gateway = await serve({ open: true, failures: true });
    const chromium = await start({ deviceScaleFactor: zoom });
    chromium.expect(/404/);
    const page = await chromium.open(`${gateway.url}/#/`);
    for (const path of PAGES) {
      await page.goto(`${gateway.url}/${path}`);
      await settled(page);
      await check(page, path, VIEWS.filter((it) => it[2] === zoom));
    }
    await chromium.close();
    await gateway.close();
  });
}

for (const state of ['loading', 'empty', 'failed', 'old']) {
  test(`every page is accessible and says what is the matter when its data is ${state}`, async () => {
    const gateway = await serve({ open: true, failures: state !== 'empty', empty: state === 'empty' });
    const chromium = await start();
    chromium.expect(/status of (404|503)/);
    const page = await chromium.open('about:blank', gateway.url);
    for (const [path, nothing] of Object.entries(READERS)) {
      // A call that is over does not change, so what is shown of it is never old.
      if (state === 'old' && path === '#/calls/f1') continue;
      gateway.state.lists = { loading: 'hang', failed: 'fail' }[state] ?? 'work';
      // Requests that hang keep their connections until their page is left.
      await page.goto('about:blank');
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${gateway.url}/${path}`);
      // What the page itself shows while it loads, and not what is there before its code has arrived.
      if (state === 'loading') await page.locator('main :not(.wait) > [aria-label="Loading"]').first().waitFor();
      else if (state === 'empty') { if (nothing) await page.getByText(nothing).first().waitFor(); }
      else if (state === 'failed') await page.locator('main').getByText('the database is away').first().waitFor();
      else {
        await settled(page);
        gateway.state.lists = 'fail';
        // Another stream means that everything is read again, and now fails.
        gateway.tell('hello', { version: '0.9.0', started_at: new Date().toISOString(), number: 2 });
        await page.locator('main').getByText('the database is away').first().waitFor();
        assert.ok((await page.locator('main h1').count()) > 0, `${path} keeps what it has`);
      }
      await check(page, `${path} ${state}`, VIEWS);
    }
    await chromium.close();
    await gateway.close();
  });
}

test('the list of servers fits at every width, whatever they are called and need', async () => {
  const long = sources.map((it, at) => ({ ...it, id: `s${at}`, name: `${it.name}-${'x'.repeat(80)}`, description: 'words and '.repeat(30), missing: it.missing.flatMap((name) => [name, `ANOTHER_${'X'.repeat(60)}`, 'THIRD']) }));
  const breaker = (name, state, failure_count) => ({ service_name: name, state, failure_count, failure_threshold: 500, last_failure_time: null, recovery_timeout: 'PT59M', last_state_change: new Date().toISOString() });
  const breakers = long.map((it, at) => breaker(it.name, ['CLOSED', 'OPEN', 'HALF-OPEN'][at % 3], at * 111));
  const gateway = await serve({ open: true, overrides: { lists: { '/api/v1/sources': () => long, '/api/v1/breakers': () => breakers } } });
  const chromium = await start();
  const page = await chromium.open(`${gateway.url}/#/servers`);
  await page.getByRole('row', { name: 'THIRD' }).waitFor();
  for (const width of [1600, 1280, 1101, 1100, 901, 900, 721, 720, 400]) await check(page, '#/servers', [['light', width, 1]]);
  await chromium.close();
  await gateway.close();
});

test('a list fills its page, on a phone too', async () => {
  const gateway = await serve({ open: true, failures: true });
  const chromium = await start();
  const page = await chromium.open('about:blank', gateway.url);
  for (const [path, name] of [['#/tools', 'Tools'], ['#/logs', 'Log lines'], ['#/calls', 'Calls']]) {
    for (const width of [1280, 400]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${gateway.url}/${path}`);
      const list = page.getByRole('grid', { name });
      await list.waitFor();
      const { height } = await list.boundingBox();
      assert.ok(height > 400, `${path} at ${width} px: ${height} px high`);
    }
  }
  await chromium.close();
  await gateway.close();
});

test('a page that failed counts down until it may try again', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  chromium.expect(/status of 503/);
  gateway.state.lists = 'fail';
  const page = await chromium.open(`${gateway.url}/#/servers`);
  await page.getByText('wait until it is back').waitFor();
  await page.getByRole('button', { name: /Try again in \d+ s/ }).waitFor();
  await chromium.close();
  await gateway.close();
});
