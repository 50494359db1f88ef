// A real `wharf serve`, in a folder of its own, in front of the servers that a test starts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const program = process.env.WHARF ?? new URL('../../../target/debug/wharf', import.meta.url).pathname;

/** Starts a gateway for these servers (`{name: url}`) and waits until it says its address. */
export async function wharf(servers, { args = [], port = 0, folder = mkdtempSync(join(tmpdir(), 'wharf-browser-')), extra = '', settings = () => '' } = {}) {
  assert.ok(existsSync(program), `${program} is missing; run \`cargo build -p wharf\`, or name it in WHARF`);
  const entries = Object.entries(servers).map(([name, url]) => `  - name: ${name}\n    type: mcp\n    server: ${name}\n    transport: http\n    url: ${url}\n    request_timeout: 5\n`).join('');
  writeFileSync(join(folder, 'agent.yaml'), `name: test\ntools:\n  - name: todo\n    type: mcp\n    server: builtin:todo\n${entries}${extra}`);
  const env = { PATH: process.env.PATH, HOME: folder, WHARF_HOME: join(folder, 'home'), WHARF_TOKEN: 'a-token-of-the-operator-0123456789', GUEST_TOKEN: 'a-token-of-a-guest-0123456789' };
  mkdirSync(env.WHARF_HOME, { recursive: true, mode: 0o700 });
  writeFileSync(join(env.WHARF_HOME, 'wharf.toml'), '[tokens.guest]\nrole = "viewer"\nvalue = "${GUEST_TOKEN}"\n' + settings(folder), { mode: 0o600 });
  const child = spawn(program, ['serve', '--listen', `127.0.0.1:${port}`, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  // A test that fails stops at once; its gateway must not outlive it.
  const reap = () => child.kill('SIGKILL');
  process.on('exit', reap);
  let said = '';
  const url = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`wharf did not start:\n${said}`)), 60_000);
    const read = (data) => {
      said += data;
      const found = /^\s*Console\s+(http:\/\/127\.0\.0\.1:\d+)/m.exec(said)?.[1];
      if (found) { clearTimeout(late); resolve(found); }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => reject(new Error(`wharf exited with ${code}:\n${said}`)));
  });
  const token = env.WHARF_TOKEN;
  const api = (path, init = {}) => fetch(url + path, { ...init, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers } });
  return {
    url, token, guest: env.GUEST_TOKEN, folder, api, log: () => said,
    ticket: async () => (await (await api('/api/v1/tickets', { method: 'POST', body: '{}' })).json()).path,
    async stop({ keep = false } = {}) {
      const gone = new Promise((done) => child.on('exit', done));
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), 30_000).unref();
      await gone;
      process.off('exit', reap);
      if (!keep) rmSync(folder, { recursive: true, force: true });
    },
  };
}
