import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocks, inline, type Inline } from '../../src/lib/markdown.ts';

const show = (list: Inline[]): string => list.map((it) => ('inside' in it ? `${it.kind === 'link' ? `link ${it.href}` : it.kind}(${show(it.inside)})` : it.kind === 'text' ? it.text : `${it.kind}(${it.text})`)).join('');

const lines: [string, string][] = [
  ['a **bold** and *soft* word', 'a strong(bold) and em(soft) word'],
  ['`a ** b` ``c ` d``', 'code(a ** b) code(c ` d)'],
  ['snake_case_name and 2 * 3 * 4', 'snake_case_name and 2 * 3 * 4'],
  ['[x](https://a.b/c) ![p](http://evil/x.png)', 'link https://a.b/c(x) image(p, http://evil/x.png)'],
  ['see https://a.b/c?d=e.', 'see link https://a.b/c?d=e(https://a.b/c?d=e).'],
  ['[bad](javascript:alert(1))', 'link javascript:alert(1(bad))'],
  ['<b>no</b> \\*stars\\*', '<b>no</b> *stars*'],
  ['**open', '**open'], ['~~gone~~', 'del(gone)'], ['**a *b* c**', 'strong(a em(b) c)'],
];
test('lines of models are read', () => { for (const [text, expected] of lines) assert.equal(show(inline(text)), expected, text); });

test('blocks of models are read', () => {
  const found = blocks('# Title\n\nOne\ntwo\n\n- a\n  - b\n- c\n\n1. x\n2. y\n\n> q\n\n| h | i |\n|---|---|\n| 1 | 2 |\n\n```js\nlet x;\n\n# no\n```\n---\nend');
  assert.deepEqual(found.map((it) => it.kind), ['heading', 'paragraph', 'list', 'list', 'quote', 'table', 'code', 'rule', 'paragraph']);
  const list = found[2]!;
  assert.ok(list.kind === 'list' && list.items.length === 2 && list.items[0]![1]!.kind === 'list');
  assert.ok(found[6]!.kind === 'code' && found[6]!.text === 'let x;\n\n# no');
  assert.ok(blocks('```\nnot closed').length === 1);
});

test('no text takes long', () => {
  for (const text of ['*'.repeat(20_000), '['.repeat(20_000), '>'.repeat(5_000), `${'- '.repeat(5_000)}x`, '`'.repeat(20_001), '|'.repeat(20_000), '_a'.repeat(10_000), `${' '.repeat(20_000)}-`]) {
    const started = performance.now();
    blocks(text);
    assert.ok(performance.now() - started < 1_500, `${text.slice(0, 5)}: ${performance.now() - started} ms`);
  }
});
