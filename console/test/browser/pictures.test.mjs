// The pictures of the documentation, with fixed data and a fixed clock. `UPDATE=1` writes them to docs/pictures; without it
// they are only made, because fonts differ between machines.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { serve } from '../gateway.mjs';
import { start } from './harness.mjs';

const FOLDER = new URL('../../../docs/pictures/', import.meta.url);
const MAX_BYTES = 150_000;
const NOW = Date.parse('2026-11-18T10:00:00Z');
const TODO = encodeURIComponent(JSON.stringify({ title: 'Buy eggs', priority: 2, tags: ['shop'] }));
const PICTURES = [
  ['overview', '#/', 'light'], ['overview-dark', '#/', 'dark'], ['servers', '#/servers', 'light'], ['server', '#/servers/weather', 'light'],
  ['tool', `#/tools/todo%3Acreate_todo?args=${TODO}`, 'light', (page) => page.getByRole('button', { name: 'Call', exact: true }).click()],
  ['form', '#/tools/files%3Aeverything', 'light'], ['calls', '#/calls', 'light'], ['call', '#/calls/f1', 'light'], ['metrics', '#/metrics', 'light'], ['logs', '#/logs', 'light'], ['history', '#/tools/search%3Afind/history', 'light'],
  ['prompts', '#/prompts/todo__plan_my_day', 'light'], ['resources', '#/resources?uri=todo%3A%2F%2Flist', 'light'],
  ['add', '#/servers/add', 'light'], ['agent', '#/agent', 'light'], ['settings', '#/settings', 'light'],
  ['chat', '#/chat', 'light', async (page) => { await page.getByLabel('Message', { exact: true }).fill('Remind me to buy eggs, and delete todo 7'); await page.keyboard.press('Enter'); await page.getByText('May the agent call').waitFor(); }],
];

test('the pictures of the documentation are made and small', async () => {
  const update = process.env.UPDATE === '1';
  if (update) mkdirSync(FOLDER, { recursive: true });
  const gateway = await serve({ open: true, failures: true, now: NOW });
  const chromium = await start();
  const page = await chromium.open('about:blank', gateway.url);
  await page.clock.setFixedTime(NOW);
  for (const [name, path, colorScheme, act] of PICTURES) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.goto(`${gateway.url}/?${name}${path}`);
    await page.waitForFunction(() => document.querySelector('main h1, main h2') && !document.querySelector('[aria-label="Loading"]'));
    await act?.(page);
    await page.waitForTimeout(400);
    const picture = await page.screenshot();
    assert.ok(picture.length <= MAX_BYTES, `${name}: ${picture.length} bytes`);
    if (update) writeFileSync(new URL(`${name}.png`, FOLDER), picture);
  }
  await chromium.close();
  await gateway.close();
});

test('every picture that is checked in is made here, and small', () => {
  const known = new Set(PICTURES.map(([name]) => `${name}.png`));
  for (const name of readdirSync(FOLDER)) {
    assert.ok(known.has(name), `${name} is made by no test`);
    assert.ok(readFileSync(new URL(name, FOLDER)).length <= MAX_BYTES, name);
  }
});
