// The page in front of a real gateway: events, breakers, restarts, registering, and the agent with a model.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serveMcp } from '../servers/mcp_server.mjs';
import { serveModel } from '../servers/model.mjs';
import { accessible, start } from './harness.mjs';
import { wharf } from './wharf.mjs';

let server, other, model, gateway, chromium, page;
const MODEL = () => `model:\n  provider: openai\n  name: m\n  endpoint: ${model.url}\n  api_key: k\n`;
before(async () => {
  [server, other, model] = [await serveMcp('legacy'), await serveMcp('modern'), await serveModel()];
  gateway = await wharf({ files: server.url }, { extra: MODEL() });
  chromium = await start();
  chromium.expect(/status of (401|403|404|409|429|502|503)|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to fetch/);
  page = await chromium.open(gateway.url + (await gateway.ticket()));
  await page.getByRole('heading', { level: 1 }).first().waitFor();
});
after(async () => {
  await chromium.close();
  await gateway.stop();
  for (const each of [server, other, model]) await each.close();
});
const open = async (path) => { await page.goto(`${gateway.url}/${path}`); };
const call = (tool, args = {}, more = {}) => gateway.api(`/api/v1/tools/${encodeURIComponent(tool)}/call`, { method: 'POST', body: JSON.stringify({ arguments: args, ...more }) });

test('a call made elsewhere appears at once, with who made it', async () => {
  await open('#/calls');
  await page.getByText('live', { exact: true }).waitFor();
  await call('todo:create_todo', { title: 'from elsewhere' }, { request_id: 'seen-live-1' });
  await page.locator('[href="#/calls/seen-live-1"]').waitFor();
  await accessible(page, 'calls of a real gateway');
});

test('a running call shows its progress and is cancelled by an operator', async () => {
  const made = call('files:progress', {}, { request_id: 'long-1' });
  await open('#/calls');
  await page.locator('[href="#/calls/long-1"]').waitFor();
  await page.getByText(/step \d/).waitFor();
  await page.locator('[href="#/calls/long-1"]').click();
  await page.getByRole('button', { name: 'Cancel this call' }).click();
  assert.notEqual((await made).status, 200);
});

test('a breaker that opens is said above every page, and is reset', async () => {
  for (let at = 0; at < 6; at++) await call('files:breaks');
  await open('#/servers/files');
  await page.getByText('The circuit breaker is open for').waitFor();
  await page.getByText('Last failure: breaks').waitFor();
  await page.getByRole('button', { name: 'Reset the breaker' }).click();
  await page.getByText('The circuit breaker is open for').waitFor({ state: 'detached' });
});

test('a server is registered, used and removed', async () => {
  await open('#/servers/add');
  await page.getByRole('textbox', { name: 'Name' }).fill('extra');
  await page.getByRole('textbox', { name: 'Address' }).fill(other.url);
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByText('extra is registered').waitFor();
  assert.equal((await call('extra:hostile', {}, { request_id: 'of-extra-1' })).status, 200);
  await page.getByRole('link', { name: 'Open it' }).click();
  // Its id is not the name that its calls have.
  await page.getByText('1 call in the last hour').waitFor();
  await page.getByRole('link', { name: 'Its calls' }).click();
  await page.locator('[href="#/calls/of-extra-1"]').waitFor();
  await page.goBack();
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('extra');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'Servers' }).waitFor();
  await page.getByRole('link', { name: 'extra' }).waitFor({ state: 'detached' });
});

test('the agent answers, and its call is a card', async () => {
  await open('#/chat');
  await page.getByLabel('Message', { exact: true }).fill('Remind me to buy eggs');
  await page.keyboard.press('Enter');
  await page.locator('strong', { hasText: 'it' }).waitFor();
  await page.getByText('create_todo').first().waitFor();
  assert.equal(await page.locator('.messages img').count(), 0);
  await accessible(page, 'a conversation with a real gateway');
});

test('a call that may destroy waits for a decision, and the conversation is kept', async () => {
  await open('#/chat');
  await page.getByRole('link', { name: 'New' }).click();
  await page.getByLabel('Message', { exact: true }).fill('Please wipe it');
  await page.keyboard.press('Enter');
  await page.getByText('May the agent call files:wipe?').waitFor();
  await accessible(page, 'an approval of a real gateway');
  assert.ok(!server.seen.calls.some((it) => it.name === 'wipe'), 'nothing was called before the decision');
  await page.getByRole('button', { name: 'Allow this call' }).click();
  await page.getByText('You allowed files:wipe').waitFor();
  await page.locator('strong', { hasText: 'it' }).waitFor();
  assert.deepEqual(server.seen.calls.filter((it) => it.name === 'wipe').map((it) => it.arguments), [{ what: 'disk' }]);
  await page.reload();
  await page.getByText('Please wipe it').first().waitFor();
  await page.getByText('completed').first().waitFor();
});

test('every page of a real gateway loads without an error', async () => {
  for (const path of ['#/', '#/servers', '#/servers/todo?tab=definition', '#/tools', '#/tools/todo:create_todo/history', '#/prompts', '#/resources', '#/calls', '#/logs', '#/metrics', '#/agent', '#/settings']) {
    await open(path);
    await page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('[aria-label="Loading"]'));
    await accessible(page, `${path} of a real gateway`);
    const wrong = await page.locator('main [role="alert"]').allInnerTexts();
    assert.deepEqual(wrong, [], path);
  }
});

test('a gateway that was restarted is read again, and no call is missing', async () => {
  await open('#/calls');
  await page.getByText('live', { exact: true }).waitFor();
  const port = Number(new URL(gateway.url).port);
  const { folder } = gateway;
  await gateway.stop({ keep: true });
  // A list that was being read says the same, so only the line above the page counts.
  await page.locator('.banner').getByText('The gateway cannot be reached').waitFor();
  gateway = await wharf({ files: server.url }, { extra: MODEL(), port, folder });
  await call('todo:create_todo', { title: 'after' }, { request_id: 'after-restart-1' });
  // Sessions end with a gateway on SQLite; the page asks for the token and goes on where it was.
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Token').or(page.locator('[href="#/calls/after-restart-1"]')).first().waitFor();
  if (await dialog.count()) { await dialog.getByLabel('Token').fill(gateway.token); await page.keyboard.press('Enter'); }
  await page.locator('[href="#/calls/after-restart-1"]').waitFor();
});
