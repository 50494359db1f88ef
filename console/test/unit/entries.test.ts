import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromEntries, type Entry } from '../../src/lib/entries.ts';

const entry = (kind: string, body: Record<string, unknown>, call_id: string | null = null): Entry => ({ kind, run_id: 'r', call_id, body });

test('the entries of a conversation become messages', () => {
  const messages = fromEntries([
    entry('user', { content: [{ text: 'Buy eggs' }] }),
    entry('answer', { parts: [{ reasoning: { text: 'hm' } }, { text: { text: 'Yes.' } }, { call: { id: 'c1', name: 'todo__create', arguments: '{"title":"eggs"}' } }] }),
    entry('started', { tool_id: 'todo:create' }, 'c1'),
    entry('approval', { is_allowed: true, by: 'ada', reason: null }, 'c1'),
    entry('result', { call_id: 'c1', name: 'todo__create', content: [{ text: 'done' }], is_error: false, status: 'completed', duration: 0.5 }, 'c1'),
    entry('answer', { parts: [{ text: { text: 'Done.' } }] }),
    entry('ending', { status: 'finished', error: null }),
  ]);
  assert.deepEqual(messages.map((it) => [it.role, it.parts.map((part) => part.kind)]), [['user', ['text']], ['assistant', ['thinking', 'text', 'tool', 'note', 'text']]]);
  const tool = messages[1]!.parts[2]!;
  assert.ok(tool.kind === 'tool' && tool.status === 'completed' && tool.seconds === 0.5);
  assert.deepEqual(tool.kind === 'tool' && [tool.args, tool.result], [{ title: 'eggs' }, { content: [{ type: 'text', text: 'done' }] }]);
});

test('a call without a result may have run', () => {
  const [message] = fromEntries([entry('answer', { parts: [{ call: { id: 'c1', name: 'a__b', arguments: 'not json' } }] })]);
  assert.ok(message!.parts[0]!.kind === 'tool' && message!.parts[0]!.status === 'unknown' && message!.parts[0]!.args === 'not json');
});
