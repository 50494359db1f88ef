// The hostile servers of this repository, as programs: each misbehaves in one way.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';

const program = process.env.HOSTILE ?? new URL('../../../target/debug/hostile', import.meta.url).pathname;

/** A test that fails stops at once; its servers must not outlive it. */
const running = new Set();
process.on('exit', () => { for (const child of running) child.kill('SIGKILL'); });

/** Starts one that misbehaves like this, over HTTP, and returns its address. */
export async function hostile(mode, ...args) {
  assert.ok(existsSync(program), `${program} is missing; run \`cargo build -p hostile\`, or name it in HOSTILE`);
  const child = spawn(program, ['--transport', 'http', '--listen', '127.0.0.1:0', '--mode', mode, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  running.add(child);
  const address = await new Promise((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (data) => { said += data; const found = /hostile: (\S+:\d+) /.exec(said); if (found) resolve(found[1]); });
    child.on('exit', (code) => reject(new Error(`hostile exited with ${code}: ${said}`)));
  });
  return { url: `http://${address}/mcp`, close: () => { running.delete(child); child.kill('SIGKILL'); } };
}
