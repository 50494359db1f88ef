import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changes, diff } from '../../src/lib/diff.ts';
import { copies, python } from '../../src/lib/copy.ts';
import { foreign, gist, isSecretName } from '../../src/lib/foreign.ts';
import { ago, durationSeconds, seconds } from '../../src/lib/time.ts';

test('two values are compared place by place', () => {
  const node = diff({ a: 1, b: [1, 2], c: 'x' }, { a: 1, b: [1, 3, 4], d: null });
  assert.equal(changes(node), 4);
  assert.deepEqual(node.children!.map((it) => [it.name, it.change]), [['a', 'same'], ['b', 'changed'], ['c', 'gone'], ['d', 'added']]);
  assert.equal(changes(diff({ a: [] }, { a: [] })), 0);
  assert.equal(changes(diff([], {})), 1);
  assert.equal(changes(diff(JSON.parse('{"__proto__": 1}'), {})), 1);
});

test('calls are copied in a form that a shell takes as it is', () => {
  const it = { toolId: 'todo:create', name: 'todo__create', args: { title: "it's $HOME `x`", n: 1, ok: true, none: null }, origin: 'http://127.0.0.1:7373' };
  assert.ok(copies.curl!.text(it).includes(`'{"arguments":{"title":"it'\\''s $HOME \`x\`","n":1,"ok":true,"none":null}}'`));
  assert.ok(copies.wharf!.text(it).startsWith('wharf call todo:create \''));
  assert.equal(python({ a: [true, null, 'x'] }), '{\n    "a": [\n        True,\n        None,\n        "x",\n    ],\n}');
  for (const each of Object.values(copies)) assert.ok(!each.text(it).includes('ws_'));
});

test('text of others shows what is not seen', () => {
  assert.equal(foreign('a\u202Eb\u200Bc\u001b[31md\u001b[0m\u0007'), 'a⟨202E⟩b⟨200B⟩cd⟨0007⟩');
  assert.equal(foreign('x'.repeat(30), 10), `${'x'.repeat(10)}…`);
  assert.equal(gist('Lists the todos, newest first. More words.'), 'Lists the todos, newest first.');
  assert.deepEqual(['api_key', 'password', 'GITHUB_TOKEN', 'max_tokens', 'title'].map(isSecretName), [true, true, true, false, false]);
});

test('times are short', () => {
  assert.deepEqual([0.4, 12, 1_234, 45_600, 600_000].map(seconds), ['<1 ms', '12 ms', '1.23 s', '45.6 s', '10 min']);
  assert.equal(ago(0, 90_000), '1 min ago');
  assert.deepEqual(['PT30S', 'PT1M30S', 'P1D', 'x'].map(durationSeconds), [30, 90, 86_400, 0]);
});
