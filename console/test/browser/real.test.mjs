// The page in front of a real gateway, with servers of both eras behind it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serveMcp } from '../servers/mcp_server.mjs';
import { accessible, start, until } from './harness.mjs';
import { wharf } from './wharf.mjs';

let legacy, modern, gateway, chromium, page;
before(async () => {
  [legacy, modern] = [await serveMcp('legacy'), await serveMcp('modern')];
  gateway = await wharf({ legacy: legacy.url, modern: modern.url });
  chromium = await start();
  chromium.expect(/status of (401|404|409|422|429|503)/);
  page = await chromium.open(gateway.url + (await gateway.ticket()));
  await page.getByText('operator').first().waitFor();
});
after(async () => {
  await chromium.close();
  await gateway.stop();
  await legacy.close();
  await modern.close();
});

const open = async (path) => { await page.goto(`${gateway.url}/${path}`); };
async function call(toolId, args) {
  await open(`#/tools/${encodeURIComponent(toolId)}${args ? `?args=${encodeURIComponent(JSON.stringify(args))}` : ''}`);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
}

test('a ticket signs in once; nothing of it is in an address or a log', async () => {
  assert.ok(!page.url().includes('ticket'), page.url());
  const path = await gateway.ticket();
  const ticket = path.split('=')[1];
  const first = await gateway.api('/api/v1/session', { method: 'POST', body: '{}', headers: { authorization: `Bearer ${ticket}` } });
  const second = await gateway.api('/api/v1/session', { method: 'POST', body: '{}', headers: { authorization: `Bearer ${ticket}` } });
  assert.deepEqual([first.status, second.status], [201, 401]);
  assert.ok(!gateway.log().includes(ticket));
});

test('the page is served with its policy, packed, and not modified', async () => {
  const response = await fetch(`${gateway.url}/`);
  const policy = response.headers.get('content-security-policy');
  for (const part of ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), policy);
  const etag = response.headers.get('etag');
  assert.equal((await fetch(`${gateway.url}/`, { headers: { 'if-none-match': etag } })).status, 304);
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(await response.text())[1];
  const asset = await fetch(gateway.url + script);
  assert.match(asset.headers.get('cache-control'), /immutable/);
  assert.equal(asset.headers.get('content-encoding'), 'gzip');
});

test('servers and tools of both eras are there', async () => {
  await open('#/servers');
  for (const name of ['todo', 'legacy', 'modern']) await page.getByRole('link', { name, exact: true }).waitFor();
  await open('#/tools?source=modern');
  await page.getByText(/\d+ of \d+/).waitFor();
  await accessible(page, 'tools of a real gateway');
});

test('a todo is created and listed', async () => {
  await call('todo:create_todo', { title: 'Milk \u{1F6A2} "quotes" <b>' });
  await page.getByText('success', { exact: true }).waitFor();
  await call('todo:list_todos');
  await page.getByText('Milk \u{1F6A2} "quotes" <b>').first().waitFor();
  assert.ok(!gateway.log().includes('Milk'), 'arguments are in no log');
  await page.reload();
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
});

for (const era of ['legacy', 'modern']) {
  test(`${era}: progress is shown, and cancelling reaches the server`, async () => {
    const server = era === 'legacy' ? legacy : modern;
    const before = server.seen.cancelled;
    await call(`${era}:progress`);
    await page.getByText(/step \d/).waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('You cancelled it').waitFor();
    await until(() => server.seen.cancelled > before, 'the server did not hear of it');
  });

  test(`${era}: elicitation and sampling are answered in the page`, async () => {
    await call(`${era}:form`);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Who <b>are</b> you?').waitFor();
    await dialog.getByRole('textbox', { name: 'name' }).fill('Ada');
    await dialog.getByRole('button', { name: 'Accept' }).click();
    await page.getByText('"Ada"').first().waitFor();
    await call(`${era}:sample`);
    await dialog.getByLabel('Your answer').fill('Something');
    await dialog.getByRole('button', { name: 'Send answer' }).click();
    await page.getByText('"Something"').first().waitFor();
  });

  test(`${era}: the tool's own error and a broken connection are told apart`, async () => {
    await call(`${era}:fails`);
    await page.getByText("the tool's own error").waitFor();
    await call(`${era}:breaks`);
    await page.getByText('failed', { exact: true }).first().waitFor();
  });

  test(`${era}: hostile results are inert`, async () => {
    await call(`${era}:hostile`);
    await page.getByText('success', { exact: true }).waitFor();
    await page.getByText('⟨202E⟩').first().waitFor();
    assert.equal(await page.locator('a[href^="javascript"]').count(), 0);
  });
}

test('arguments that do not fit are refused at their field', async () => {
  await call('legacy:strict', { place: { city: 'bern' } });
  await page.getByRole('textbox', { name: 'city' }).and(page.locator('[aria-invalid="true"]')).waitFor();
});

test('ten megabytes are shown with few elements', async () => {
  await call('modern:huge');
  await page.getByText('success', { exact: true }).waitFor();
  assert.ok((await page.evaluate(() => document.querySelectorAll('*').length)) < 1_000);
});

test('prompts complete and resources are read', async () => {
  await open('#/prompts/legacy__greet');
  await page.getByRole('combobox', { name: 'who' }).fill('A');
  await page.locator('datalist option[value="Ada"]').waitFor({ state: 'attached' });
  await page.getByRole('combobox', { name: 'who' }).fill('Ada');
  await page.getByRole('button', { name: 'Get messages' }).click();
  await page.getByText('Greet Ada <script>').waitFor();
  await open(`#/resources?uri=${encodeURIComponent('test://note')}`);
  await page.getByText('text of test://note').waitFor();
});

test('a call is found in Calls and opened', async () => {
  await call('todo:create_todo', { title: 'limit of seven' });
  await page.getByText('success', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'open the call' }).click();
  await page.getByText('todo:create_todo').first().waitFor();
  await page.getByText('limit of seven').first().waitFor();
  await accessible(page, 'a call of a real gateway');
});

test('a call that takes too long ends at the timeout of its server', async () => {
  await call('legacy:hangs');
  await page.getByText('failed', { exact: true }).first().waitFor();
  await page.getByText(/5 s|timed? ?out/i).first().waitFor();
});

test('a viewer sees everything and can call nothing', async () => {
  await open('#/settings');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').fill(gateway.guest);
  await page.keyboard.press('Enter');
  await page.getByLabel('Token').waitFor({ state: 'detached' });
  await page.getByText('guest · viewer').waitFor();
  await open('#/tools/todo:list_todos');
  await page.getByText('Needs the role caller').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Call', exact: true }).isDisabled());
  await open('#/servers/legacy');
  await page.getByText('Restarting needs the role operator').waitFor();
  await open('#/agent');
  await page.getByText('needs the role admin').waitFor();
});
