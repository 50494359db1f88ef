import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serve } from '../gateway.mjs';
import { accessible, start } from './harness.mjs';

let gateway, chromium, page;
before(async () => {
  gateway = await serve({ open: true });
  chromium = await start();
  page = await chromium.open(`${gateway.url}/#/tools`);
});
after(async () => { await chromium.close(); await gateway.close(); });

const sent = () => JSON.parse(gateway.state.bodies.findLast((it) => it.includes('"tools/call"')));
async function call(toolId, args) {
  const query = args === undefined ? '' : `?args=${encodeURIComponent(JSON.stringify(args))}`;
  await page.goto(`${gateway.url}/#/tools/${encodeURIComponent(toolId)}${query}`);
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
}

const PLACE = { title: 'Milk', place: { city: 'Bern' } };
const VALUES = [
  PLACE,
  { ...PLACE, priority: 2, status: 'completed', size: 'l', due: '2026-11-18', at: '2026-11-18T10:00:00Z', mail: 'a@b.ch', link: 'https://example.com' },
  { ...PLACE, nothing: null, maybe: null }, { ...PLACE, nothing: '', maybe: 0 }, { ...PLACE, nothing: 'x', maybe: 7 },
  { ...PLACE, tags: [] }, { ...PLACE, tags: ['x', 'y'], pair: [1, 'b'] },
  { ...PLACE, place: { city: 'Bern', geo: { lat: 46.9, lon: 7.4 } } },
  { ...PLACE, shape: { kind: 'circle', radius: 1.5 } }, { ...PLACE, shape: { kind: 'box', width: 3 } },
  { ...PLACE, either: 'x' }, { ...PLACE, either: 7 }, { ...PLACE, either: false },
  { ...PLACE, tree: { name: 'a', children: [{ name: 'b', children: [] }] }, done: false },
  { ...PLACE, labels: { k: 'v', 'ä/~ "quote"': '\u{1F6A2}' }, byName: { 'x-1': 5 } },
  { ...PLACE, anything: { deep: [1, null, 'x'] } }, { ...PLACE, title: 'Ünïcödé \u{1F6A2} &=?#%\n"' },
  { ...PLACE, status: 'archived', due: '2026-01-01' }, { ...PLACE, picture: 'aGVsbG8=' },
];

test('what goes in comes out, through the form and through JSON', async () => {
  for (const value of VALUES) {
    await call('files:everything', value);
    for (const form of ['Form', 'JSON', 'Form']) {
      await page.getByRole('button', { name: form, exact: true }).click();
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByText('success', { exact: true }).waitFor();
      assert.deepEqual(sent().params.arguments, value, form);
    }
  }
  const said = gateway.state.requests.join('\n');
  assert.ok(!said.includes('Bern') && !said.includes('Milk'), 'no argument was in an address that was sent');
});

test('nothing is sent that was not entered, and required fields are asked for', async () => {
  await call('files:everything');
  const before = gateway.state.bodies.length;
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('is required').first().waitFor();
  assert.ok(!gateway.state.bodies.slice(before).some((it) => it.includes('tools/call')));
  await accessible(page, 'form with problems');
  await page.getByLabel('title', { exact: false }).first().fill('Milk');
  await page.getByLabel('city', { exact: false }).first().fill('Bern');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('success', { exact: true }).waitFor();
  assert.deepEqual(sent().params.arguments, PLACE);
});

test('a value can be taken back, and empty text is not the same as none', async () => {
  await call('todo:create_todo', { title: 'x', due: '2026-11-18', tags: ['a'] });
  await page.getByRole('button', { name: 'Do not send due' }).click();
  await page.getByRole('button', { name: 'Do not send tags' }).click();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('success', { exact: true }).waitFor();
  assert.deepEqual(sent().params.arguments, { title: 'x' });
  await call('files:refuse', { place: { city: '' } });
  await page.getByText('empty text is sent').waitFor();
});

test('the gateway\'s problems appear at their field', async () => {
  await call('files:refuse', { place: { city: 'Atlantis' } });
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('there is no such city').waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'city' }).getAttribute('aria-invalid'), 'true');
});

test('long arguments are packed into the link and come back', async () => {
  const title = 'A long title with \u{1F6A2} and ümlauts. '.repeat(100);
  await call('files:everything', PLACE);
  await page.getByRole('textbox', { name: 'title' }).fill(title);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('success', { exact: true }).waitFor();
  await page.waitForFunction(() => location.hash.includes('argz='));
  await page.reload();
  await page.waitForFunction((wanted) => [...document.querySelectorAll('form input, form textarea')].some((it) => it.value === wanted), title);
});

test('an expression that takes for ever does not hang the page', async () => {
  await call('files:everything', { ...PLACE, evil: `${'a'.repeat(40)}!` });
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('success', { exact: true }).waitFor();
});

test('secrets stay out of links and copies', async () => {
  await call('files:everything', PLACE);
  await page.getByLabel('secret').fill('hunter2');
  await page.getByText('Left out of links and copies: secret').waitFor();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('success', { exact: true }).waitFor();
  assert.equal(sent().params.arguments.secret, 'hunter2');
  const kept = await page.evaluate(() => location.href + JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.ok(!kept.includes('hunter2'), kept);
});

test('a tool that may destroy shows its arguments first', async () => {
  await call('todo:delete_todo', { id: 'seven' });
  const before = gateway.state.calls.length;
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('"seven"').waitFor();
  await accessible(page, 'confirmation');
  await page.keyboard.press('Escape');
  assert.equal(gateway.state.calls.length, before);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await dialog.getByText('Do not ask again').click();
  await dialog.getByRole('button', { name: 'Call it' }).click();
  await page.getByText('success', { exact: true }).waitFor();
  await page.keyboard.press('Control+Enter');
  await page.waitForFunction(() => document.querySelectorAll('dialog[open]').length === 0);
  await page.getByText('success', { exact: true }).waitFor();
  assert.equal(gateway.state.calls.length, before + 2);
});
