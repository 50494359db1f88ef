import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../gateway.mjs';
import { accessible, start } from './harness.mjs';

const REFUSED = /status of 401|Failed to load resource/;

test('a ticket signs in once and leaves the address', async () => {
  const gateway = await serve();
  const chromium = await start();
  chromium.expect(REFUSED);
  const page = await chromium.open(`${gateway.url}/#ticket=wt_once`);
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.getByText('operator · admin').waitFor();
  assert.ok(!page.url().includes('ticket'), page.url());
  assert.ok(!gateway.state.requests.some((it) => it.includes('wt_once')), 'no ticket in an address that was sent');
  assert.equal(await page.evaluate(() => document.cookie), '');

  const second = await chromium.open(gateway.url);
  await second.getByText('operator · admin').waitFor();
  await second.close();

  await page.evaluate(() => sessionStorage.clear());
  await page.close();
  const used = await chromium.open(`${gateway.url}/#ticket=wt_once`);
  await used.getByText('was used before').waitFor();
  await chromium.close();
  await gateway.close();
});

test('a token is traded for a session and not kept', async () => {
  const gateway = await serve();
  const chromium = await start();
  chromium.expect(REFUSED);
  const page = await chromium.open(gateway.url);
  await page.getByLabel('Token').fill('wrong');
  await accessible(page, 'sign-in');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('not known to the gateway').waitFor();
  await page.getByLabel('Token').fill('a-token');
  await page.keyboard.press('Enter');
  await page.getByText('operator · admin').waitFor();
  const kept = await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]));
  assert.ok(!kept.includes('a-token') && kept.includes('ws_'), kept);
  await chromium.close();
  await gateway.close();
});

test('a session that ends keeps what was typed', async () => {
  const gateway = await serve();
  const chromium = await start();
  chromium.expect(REFUSED);
  const page = await chromium.open(`${gateway.url}/#ticket=wt_once`);
  await page.getByText('operator · admin').waitFor();
  await page.goto(`${gateway.url}/#/tools/todo:create_todo`);
  await page.getByLabel('title').fill('Milk, and a long thought');
  gateway.state.sessions.clear();
  // A list that is read again may notice it first, and then the dialog is over the button.
  await page.getByRole('button', { name: 'Call', exact: true }).evaluate((it) => it.click());
  await page.getByText('You are signed out').waitFor();
  await page.getByLabel('Token').fill('a-token');
  await page.keyboard.press('Enter');
  await page.getByText('You are signed out').waitFor({ state: 'detached' });
  assert.equal(await page.getByLabel('title').inputValue(), 'Milk, and a long thought');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('success', { exact: true }).waitFor();
  await chromium.close();
  await gateway.close();
});

test('without authentication the page says so, and a viewer cannot call', async () => {
  const gateway = await serve({ open: true, role: 'viewer' });
  const chromium = await start();
  const page = await chromium.open(`${gateway.url}/#/tools/todo:list_todos`);
  await page.getByText('anyone on this machine has the role viewer').waitFor();
  await page.getByText('Needs the role caller').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Call', exact: true }).isDisabled());
  await chromium.close();
  await gateway.close();
});

test('the pages are listed before the gateway has said who is here', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  gateway.state.saysNobody = true;
  const page = await chromium.open(`${gateway.url}/#/servers`);
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Servers' }).waitFor();
  await page.locator('main [aria-label="Loading"]').waitFor();
  assert.equal(gateway.state.requests.filter((it) => it.includes('/api/') && !it.endsWith('/session')).length, 0, 'nothing is read for nobody');
  await accessible(page, 'before the gateway answers');
  await chromium.close();
  await gateway.close();
});

test('a tab that has no others does not wait for them', async () => {
  const gateway = await serve({ open: true });
  const chromium = await start();
  const page = await chromium.open('about:blank', gateway.url);
  // No timer of the page ends.
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(1_000);
  await page.goto(`${gateway.url}/#/settings`);
  await page.getByText('anyone on this machine has full access').waitFor();
  await chromium.close();
  await gateway.close();
});
