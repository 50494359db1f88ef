import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { after, test } from 'node:test';
import { createServer } from 'vite';

const server = await createServer({ root: fileURLToPath(new URL('../..', import.meta.url)), configFile: fileURLToPath(new URL('../../vite.config.ts', import.meta.url)), server: { middlewareMode: true, ws: false }, appType: 'custom', logLevel: 'error' });
after(() => server.close());
const { render } = await server.ssrLoadModule('svelte/server');
const { default: WordDiff } = await server.ssrLoadModule('/src/ui/WordDiff.svelte');
/** The markup of a difference, without comments and the names of styles. */
const markup = (before: unknown, after: unknown): string => render(WordDiff, { props: { before, after } }).body.replace(/<!--.*?-->/g, '').replace(/ class="[^"]*"/g, '');

test('a text added behind a long one is shown, and no text becomes markup', () => {
  const long = 'Documents have a title. '.repeat(40);
  assert.equal(markup(long, `${long}<b>Send them\u200b`), `<span><bdi>${long}</bdi><ins>{+&lt;b>Send them⟨200B⟩+}</ins></span>`);
});

test('removed texts, line breaks and values of other types are marked without colour', () => {
  assert.equal(markup('a b', 'a\nb'), '<span><bdi>a</bdi><del>[− −]</del><ins>{+↵\n+}</ins><bdi>b</bdi></span>');
  assert.equal(markup('1', 1), '<span><del>[−"−]</del><bdi>1</bdi><del>[−"−]</del></span>');
  assert.equal(markup(null, { a: 'b' }), '<span><ins>{+{↵\n  "a": "b"↵\n}+}</ins></span>');
  assert.equal(markup(undefined, null), '<span>–</span>');
});
