import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillIn, variablesOf } from '../../src/lib/uri_template.ts';

const cases: [string, Record<string, string>, string][] = [
  ['test://template/{id}/data', { id: 'a b' }, 'test://template/a%20b/data'],
  ['file:///{+path}', { path: 'a/b c' }, 'file:///a/b%20c'],
  ['x://{a,b}', { a: '1', b: '2' }, 'x://1,2'],
  ['x://s{?q,lang}', { q: 'ä', lang: 'de' }, 'x://s?q=%C3%A4&lang=de'],
  ['x://s{?q,lang}', {}, 'x://s'],
  ['x:{/a,b*}', { a: '1', b: '2' }, 'x:/1/2'],
];
test('templates are filled in', () => {
  for (const [template, values, expected] of cases) assert.equal(fillIn(template, values), expected, template);
  assert.deepEqual(variablesOf('x://{a}/{+b}{?c,d*}{a}'), ['a', 'b', 'c', 'd']);
});
