import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

const BUILT = new URL('../../../crates/wharf/console/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, BUILT), 'utf8');
const packed = (name: string): number => gzipSync(readFileSync(new URL(name, BUILT))).length;
const assets = readdirSync(new URL('assets/', BUILT)).map((name) => `assets/${name}`);

/** The files that the browser reads before anything is shown. */
function firstLoad(): Set<string> {
  const files = new Set(['index.html']);
  const follow = (text: string): void => {
    for (const [, name] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) {
      const file = `assets/${name}`;
      if (!files.has(file)) { files.add(file); follow(read(file)); }
    }
  };
  for (const [, name] of read('index.html').matchAll(/"\/(assets\/[\w.-]+)"/g)) { files.add(name!); if (name!.endsWith('.js')) follow(read(name!)); }
  return files;
}

test('the page is as small as promised', () => {
  const first = firstLoad();
  const sum = (names: Iterable<string>) => [...names].reduce((all, name) => all + packed(name), 0);
  assert.ok(sum(first) < 60_000, `first load ${sum(first)} bytes`);
  for (const name of assets.filter((it) => !first.has(it))) assert.ok(packed(name) < 30_000, `${name} ${packed(name)} bytes`);
  assert.ok(sum(['index.html', ...assets]) < 150_000, `all ${sum(['index.html', ...assets])} bytes`);
  console.log(`first load ${sum(first)}, all ${sum(['index.html', ...assets])} bytes, packed`);
});

test('nothing in the page is on another host', () => {
  // Addresses that name a namespace, a schema or a page about an error; none is ever requested.
  const known = /^https?:\/\/(www\.w3\.org|json-schema\.org|svelte\.dev|github\.com\/cfworker|…|127\.0\.0\.1)/;
  for (const name of ['index.html', ...assets.filter((it) => !it.endsWith('.txt'))]) {
    const strange = [...read(name).matchAll(/https?:\/\/[^\s"'`<>\\)]{4,}/g)].map((it) => it[0]).filter((it) => !known.test(it) && !it.includes('${') && !/example/.test(it));
    assert.deepEqual(strange, [], name);
  }
});

test('the policy needs no exception', () => {
  const html = read('index.html');
  assert.ok(!/<script>|<script [^>]*>[^<]|<style|style=|onload=/.test(html), html);
});
