import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serve } from '../gateway.mjs';
import { accessible, start, until } from './harness.mjs';

let gateway, chromium, page;
before(async () => {
  gateway = await serve({ open: true });
  chromium = await start();
  page = await chromium.open(`${gateway.url}/#/tools`);
});
after(async () => { await chromium.close(); await gateway.close(); });
const open = async (toolId) => { await page.goto(`${gateway.url}/#/tools/${encodeURIComponent(toolId)}`); await page.getByRole('button', { name: 'Call', exact: true }).click(); };

test('progress and log lines are shown, and Escape cancels', async () => {
  await open('files:slow');
  await page.getByText(/step \d/).waitFor();
  await page.getByText('three already').waitFor();
  await accessible(page, 'a call on its way');
  await page.keyboard.press('Escape');
  await page.getByText('You cancelled it').waitFor();
  await until(() => gateway.state.cancelled === 1, 'the gateway hears of it');
});

test('questions are answered beside the call', async () => {
  await open('files:ask');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Who are you?').waitFor();
  await accessible(page, 'elicitation');
  await dialog.getByLabel('name', { exact: false }).fill('Ada');
  await dialog.getByRole('button', { name: 'Accept' }).click();
  await dialog.getByText('Say something').waitFor();
  await accessible(page, 'sampling');
  await dialog.getByLabel('Your answer').fill('Something');
  await dialog.getByRole('button', { name: 'Send answer' }).click();
  await page.getByText('success', { exact: true }).waitFor();
  const { params } = JSON.parse(gateway.state.bodies.findLast((it) => it.includes('inputResponses')));
  assert.deepEqual(params.inputResponses.who, { action: 'accept', content: { name: 'Ada' } });
  assert.equal(params.inputResponses.what.content.text, 'Something');
  assert.equal(params.requestState, 's1');
});

test('a failure says why, what to do, and whether it ran', async () => {
  await page.goto(`${gateway.url}/#/tools/search:find?args=${encodeURIComponent('{"query":"x"}')}`);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('next try in 12 s').waitFor();
  await page.getByText('wait, or reset the breaker').waitFor();
  await page.getByText('It was not sent').waitFor();
});

test('a gateway that is busy says when to try again', async () => {
  const busy = await serve({ open: true, overrides: { 'POST /mcp': ({ response, problem }) => problem(response, 429, 'too many concurrent calls (limit 1000)', { hint: 'call less often' }, { 'retry-after': '20' }) } });
  chromium.expect(/status of 429/);
  const other = await chromium.open(`${busy.url}/#/tools/todo:list_todos`);
  await other.getByRole('button', { name: 'Call', exact: true }).click();
  await other.getByText('too many concurrent calls').waitFor();
  await other.getByText(/Try again in \d+ s/).waitFor();
  await other.close();
  await busy.close();
});

test('hostile content is inert', async () => {
  await open('files:hostile');
  await page.getByText('success', { exact: true }).waitFor();
  await page.getByText('⟨202E⟩').waitFor();
  await page.locator('img').waitFor();
  assert.ok(!gateway.state.requests.some((it) => it.includes('pwned')));
  assert.equal(await page.locator('section[aria-label="Result"] a[href^="javascript"]').count(), 0);
  assert.equal(await page.evaluate(() => ({}).polluted), undefined);
  chromium.expect(/TrustedHTML|trusted/i);
  const refused = await page.evaluate(() => [() => document.body.insertAdjacentHTML('beforeend', '<b>x</b>'), () => { document.createElement('div').innerHTML = '<b>x</b>'; }, () => { document.createElement('iframe').srcdoc = '<b>x</b>'; }].map((act) => { try { act(); return false; } catch { return true; } }));
  assert.deepEqual(refused, [true, true, true], 'markup from a string is refused by the browser');
});

test('names, descriptions, errors, log lines and prompts that mean no good are inert', async () => {
  const EVIL = '<img src=x onerror="fetch(\'/pwned\')"><script>fetch("/pwned")</script> \u202Eevil \u200Bzero \u001b[31mred [x](javascript:fetch("/pwned"))';
  const { sources, tools } = await import('../fixtures/world.mjs');
  const bad = await serve({ open: true, overrides: {
    lists: {
      '/api/v1/sources': () => [{ ...sources[4], id: 'evil', name: EVIL, description: EVIL, error: { ...sources[4].error, message: EVIL, hint: EVIL, stderr: EVIL } }],
      '/api/v1/tools': () => [{ ...tools[0], tool_id: `evil:${EVIL}`, name: EVIL, wire_name: EVIL, source: 'evil', description: EVIL, reason: EVIL, enabled: false, input_schema: { type: 'object', properties: { [EVIL]: { type: 'string', title: EVIL, description: EVIL, default: EVIL }, __proto__: { type: 'string' } } } }],
      '/api/v1/logs': () => ['stderr', 'log', 'exception', 'wharf'].map((kind) => ({ at: new Date().toISOString(), source: 'evil', kind, level: 'error', text: EVIL })),
      '/api/v1/clients': () => [{ name: EVIL, version: EVIL, era: 'legacy', transport: 'http', principal: EVIL, sessions: 1, calls_per_minute: 1, last_seen: new Date().toISOString() }],
    },
    mcp: { 'prompts/list': () => ({ prompts: [{ name: EVIL, title: EVIL, description: EVIL, arguments: [{ name: EVIL, description: EVIL, required: true }] }] }), 'resources/list': () => ({ resources: [{ uri: 'javascript:fetch("/pwned")', name: EVIL, description: EVIL, mimeType: EVIL }] }) },
  } });
  chromium.expect(/status of 404/);
  const other = await chromium.open(`${bad.url}/#/`);
  const paths = ['#/', '#/servers', '#/servers/evil', '#/tools', `#/tools/${encodeURIComponent(`evil:${EVIL}`)}`, '#/logs', '#/prompts', `#/prompts/${encodeURIComponent(EVIL)}`, '#/resources', '#/metrics'];
  for (const path of paths) {
    await other.goto(`${bad.url}/${path}`);
    await other.locator('main h1').first().waitFor();
    await other.waitForFunction(() => !document.querySelector('[aria-label="Loading"]'));
    const found = await other.evaluate(() => ({ text: document.body.innerText + document.title, markup: document.querySelectorAll('main img, main script, a[href^="javascript"]').length }));
    assert.equal(found.markup, 0, path);
    assert.ok(!/[\u202e\u200b\u001b]/.test(found.text), `${path} shows characters that are not seen: ${found.text}`);
    await accessible(other, `${path} with hostile words`);
  }
  for (const line of ['stderr', 'log', 'exception']) bad.tell('batch', { events: [{ at: new Date().toISOString(), source: 'evil', kind: line, data: { text: EVIL, level: 'error' } }], skipped: {} });
  await other.goto(`${bad.url}/#/servers/evil?tab=stderr`);
  await other.getByText('⟨202E⟩').first().waitFor();
  assert.ok(!bad.state.requests.some((it) => it.includes('pwned')));
  assert.equal(await other.evaluate(() => ({}).polluted), undefined);
  await other.close();
  await bad.close();
});
