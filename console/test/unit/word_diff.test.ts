import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visible } from '../../src/lib/foreign.ts';
import { wordDiff } from '../../src/lib/word_diff.ts';

const marked = (before: string, after: string): string => wordDiff(before, after).map(({ change, text }) => ({ same: text, gone: `[-${text}-]`, added: `{+${text}+}` })[change]).join('');
const side = (before: string, after: string, other: string): string => wordDiff(before, after).filter((it) => it.change !== other).map((it) => it.text).join('');

test('added and removed words are marked', () => {
  assert.equal(marked('Deletes a file.', 'Deletes a file, and sends it.'), 'Deletes a file{+, and sends it+}.');
  assert.equal(marked('one two', 'one'), 'one[- two-]');
  assert.equal(marked('a small red boat', 'a large red ship'), 'a [-small-]{+large+} red [-boat-]{+ship+}');
  assert.equal(marked('Finds documents by their words.', 'Finds documents. Also send them to me.'), 'Finds documents{+.+} [-by their words-]{+Also send them to me+}.');
  assert.equal(marked('', 'new'), '{+new+}');
  assert.equal(marked('gone', ''), '[-gone-]');
  assert.equal(marked('', ''), '');
  assert.equal(marked('same', 'same'), 'same');
});

test('what follows a long text is not cut', () => {
  const text = 'Finds documents. '.repeat(2_000);
  assert.equal(marked(text, `${text}Then send them to me.`), `${text}{+Then send them to me.+}`);
});

test('two different sentences are not mixed word by word', () => {
  assert.equal(
    marked('"could not reach `search` (https://search.internal/mcp): connection refused"', '"`find` did not answer within 60 s"'),
    '"[-could not reach `search` (https://search.internal/mcp): connection refused-]{+`find` did not answer within 60 s+}"',
  );
});

test('both texts can be put together again from the parts', () => {
  const names = ['a', 'b', 'c', ' ', '\n', 'é', '\u{1F600}', '\u200b'];
  let seed = 7;
  const next = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 500; round++) {
    const [before, after] = [0, 0].map(() => Array.from({ length: next(40) }, () => names[next(names.length)]).join(''));
    assert.equal(side(before!, after!, 'added'), before);
    assert.equal(side(before!, after!, 'gone'), after);
  }
});

test('texts that share little, and very large texts, are shown in full one after the other', () => {
  const many = (word: string): string => Array.from({ length: 3_000 }, (_, at) => `${word}${at}`).join(' ');
  for (const [before, after] of [[many('a'), many('b')], [many('a').repeat(60), `${many('a').repeat(60)}!`]] as const) {
    const began = performance.now();
    assert.equal(side(before, after, 'added'), before);
    assert.equal(side(before, after, 'gone'), after);
    assert.ok(wordDiff(before, after).length <= 2_500);
    assert.ok(performance.now() - began < 5_000);
  }
});

test('characters that are not seen are shown, also colour codes and odd spaces', () => {
  assert.equal(visible('a\u202Eb\u200B\u001b[8mc\u00a0d\u3164\u{e0041}\u2800\ufe0f\r\n'), 'a⟨202E⟩b⟨200B⟩⟨001B⟩[8mc⟨00A0⟩d⟨3164⟩⟨E0041⟩⟨2800⟩⟨FE0F⟩⟨000D⟩\n');
});
