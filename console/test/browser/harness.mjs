// What every browser test shares: one Chromium, pages that fail the test on a refused policy, an error, an unexpected
// failed request or a request to another host, and axe.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((it) => it && existsSync(it));
assert.ok(executablePath, 'Chromium is missing; install it, or name it in CHROMIUM');
// Only loopback has an address: whatever needs another host fails.
const ARGS = ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** Longest wait for anything. Only a page that is wrong reaches it, however busy the machine is. */
export const MAX_WAIT_MS = 45_000;

/** What Chromium says to every request when a network of this machine comes or goes, such as that of a container. No page can help it. */
const NETWORK_CHANGED = /net::ERR_NETWORK_CHANGED/;

/** Loads an address, again if it was not the page's fault that it was not loaded. */
async function load(goto, url) {
  try { await goto(url); } catch (error) { if (!NETWORK_CHANGED.test(String(error))) throw error; await goto(url); }
}

/** Waits until a test of this program holds. */
export async function until(holds, what) {
  for (const end = Date.now() + MAX_WAIT_MS; !holds(); await new Promise((next) => setTimeout(next, 20))) assert.ok(Date.now() < end, what);
}

/**
 * Changes the part of the address behind `#`, and waits until the page has heard of it. `goto` does not wait for that: the
 * next click could still meet the page before.
 */
async function follow(page, hash) {
  await page.evaluate((to) => new Promise((done) => {
    if (new URL(to, location.href).href === location.href) return done();
    addEventListener('hashchange', () => setTimeout(done), { once: true });
    location.hash = to;
  }), hash);
}

/** Opens a browser with a fresh profile. Pages opened with `open` are watched until `close`, which fails on what they did. */
export async function start(context = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'wharf-console-'));
  const browser = await chromium.launchPersistentContext(profile, { executablePath, args: ARGS, viewport: { width: 1280, height: 800 }, timezoneId: 'UTC', locale: 'en-GB', ...context });
  browser.setDefaultTimeout(MAX_WAIT_MS);
  const bad = [];
  const expected = [NETWORK_CHANGED];
  const watch = (page, origin) => {
    page.on('console', (it) => { if (it.type() === 'error' && !expected.some((each) => each.test(it.text()))) bad.push(`console: ${it.text()} ${it.location().url}`); });
    page.on('pageerror', (it) => bad.push(`page error: ${it}`));
    page.on('request', (it) => { if (!it.url().startsWith(origin) && !/^(blob|data):/.test(it.url())) bad.push(`request elsewhere: ${it.url()}`); });
    page.on('requestfailed', (it) => { const text = `${it.method()} ${it.url()} ${it.failure()?.errorText}`; if (it.failure()?.errorText !== 'net::ERR_ABORTED' && !expected.some((each) => each.test(text))) bad.push(`failed: ${text}`); });
  };
  return {
    browser,
    /** Lets an error message or a failed request pass. */
    expect: (pattern) => expected.push(pattern),
    async open(url, origin = new URL(url).origin) {
      const page = await browser.newPage();
      watch(page, origin);
      const goto = page.goto.bind(page);
      page.goto = (to) => {
        const [[before], [address, hash]] = [page.url().split('#'), to.split(/(?=#)/)];
        return before === address && hash ? follow(page, hash) : load(goto, to);
      };
      await page.goto(url);
      return page;
    },
    async close() {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
      assert.deepEqual(bad, [], 'the page did what it must not');
    },
  };
}

/** Runs axe through the debugger, because the policy of the page lets nothing in. */
export async function accessible(page, what) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }));
  const words = found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => `${node.html.slice(0, 160)} ${node.any?.[0]?.message ?? ''}`).slice(0, 3).join(' | ')}`);
  assert.deepEqual(words, [], `axe: ${what}`);
}
