import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTooBig, joined, limits, shape, start, variantName, type Schema } from '../../src/lib/schema.ts';
import { harmless, problems, variantOf } from '../../src/lib/validate.ts';

const kinds: [string, Schema, string][] = [
  ['text', { type: 'string' }, 'string'],
  ['enum without a type', { enum: ['a', 1, null] }, 'choice'],
  ['const', { const: { a: 1 } }, 'choice'],
  ['enum that is too long to choose from', { enum: Array.from({ length: 501 }, (_, at) => at) }, 'json'],
  ['oneOf of constants', { oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }, 'choice'],
  ['type list with null', { type: ['string', 'null'] }, 'nullable'],
  ['type list', { type: ['string', 'integer'] }, 'variants'],
  ['anyOf with null', { anyOf: [{ type: 'integer' }, { type: 'null' }] }, 'nullable'],
  ['anyOf of three', { anyOf: [{ type: 'integer' }, { type: 'string' }, { type: 'null' }] }, 'variants'],
  ['properties without a type', { properties: { a: true } }, 'object'],
  ['prefixItems', { prefixItems: [{ type: 'number' }] }, 'array'],
  ['nothing', {}, 'json'],
  ['true', true, 'json'],
  ['a reference', { $ref: '#/$defs/a' }, 'integer'],
  ['an anchor', { $ref: '#b' }, 'boolean'],
  ['a reference to another document', { $ref: 'https://example.com/x' }, 'json'],
  ['a circle of references', { $ref: '#/$defs/loop' }, 'json'],
  ['allOf', { allOf: [{ type: 'object' }, { properties: { a: true } }] }, 'object'],
];
const root: Schema = { $defs: { a: { type: 'integer' }, b: { $anchor: 'b', type: 'boolean' }, loop: { $ref: '#/$defs/loop' } } };

test('every construct has a shape', () => {
  for (const [name, schema, kind] of kinds) assert.equal(shape(schema, root).kind, kind, name);
});


test('a form starts with what is fixed and with nothing that was not entered', () => {
  const schema: Schema = { type: 'object', required: ['kind', 'place', 'title'], properties: { kind: { const: 'x' }, title: { type: 'string', default: 'y' }, place: { type: 'object', properties: { city: { type: 'string' } } }, limit: { type: 'integer', default: 20 } } };
  assert.deepEqual(start(schema, schema), { kind: 'x', place: {} });
  assert.equal(start({ type: 'integer', default: 20 }, true), 20);
});

test('a recursive schema that requires itself ends', () => {
  const schema: Schema = { type: 'object', required: ['next'], properties: { next: { $ref: '#' } } };
  assert.ok(JSON.stringify(start(schema, schema)).length < 200);
});

test('a schema that explodes is entered as JSON, in no time', () => {
  const defs: Record<string, Schema> = { d0: { type: 'object' } };
  for (let at = 1; at < 40; at++) defs[`d${at}`] = { allOf: [{ $ref: `#/$defs/d${at - 1}` }, { $ref: `#/$defs/d${at - 1}` }] };
  const schema: Schema = { $defs: defs, $ref: '#/$defs/d39' };
  const started = performance.now();
  assert.equal(shape(schema, schema).kind, 'json');
  assert.equal(isTooBig(schema, schema), true);
  assert.equal(problems(schema, {}).size, 0);
  assert.ok(performance.now() - started < 500);
});

test('many properties are entered as JSON', () => {
  const properties = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`p${at}`, { type: 'string' }]));
  assert.equal(isTooBig({ type: 'object', properties }, true), true);
  assert.equal(isTooBig({ type: 'object', properties: { a: { type: 'string' } } }, true), false);
});

test('patterns are not run', () => {
  const schema: Schema = { type: 'object', properties: { pattern: { type: 'string', pattern: '^(a+)+$' } }, patternProperties: { '^(b+)+$': true }, additionalProperties: false };
  assert.deepEqual(harmless(schema), { type: 'object', properties: { pattern: { type: 'string' } } });
  const started = performance.now();
  assert.equal(problems(schema, { pattern: `${'a'.repeat(40)}!` }).size, 0);
  assert.ok(performance.now() - started < 500);
});

const wrong: [Schema, unknown, [string, string][]][] = [
  [{ type: 'object', required: ['a'] }, {}, [['/a', 'is required']]],
  [{ type: 'object', properties: { a: { type: 'integer', minimum: 1 } } }, { a: 0 }, [['/a', 'is too small (at least 1)']]],
  [{ type: 'object', properties: { a: { type: 'integer' } } }, { a: 'x' }, [['/a', 'must be integer']]],
  [{ type: 'object', properties: { a: { type: 'array', items: { enum: ['x'] } } } }, { a: ['x', 'y'] }, [['/a/1', 'is not one of the allowed values']]],
  [{ type: 'object', properties: { 'a/b': { type: 'object', required: ['c~d'] } } }, { 'a/b': {} }, [['/a~1b/c~0d', 'is required']]],
  [{ type: 'object', additionalProperties: false, properties: {} }, { a: 1 }, [['', 'has a property that is not allowed']]],
  [{ type: 'object', properties: { s: { minLength: 2, type: 'string' } } }, { s: '' }, [['/s', 'is too short (at least 2)']]],
];
test('problems are at the place they belong to', () => {
  for (const [schema, value, expected] of wrong) {
    const found = problems(schema, value);
    for (const [place, text] of expected) assert.equal(found.get(place) ?? [...found].join(), text, JSON.stringify(schema));
  }
});

test('a value finds its variant', () => {
  const variants: Schema[] = [{ type: 'object', properties: { kind: { const: 'circle' }, r: { type: 'number' } }, required: ['kind', 'r'] }, { type: 'object', properties: { kind: { const: 'box' } }, required: ['kind'] }];
  assert.equal(variantOf(variants, { kind: 'box' }, true), 1);
  assert.equal(variantOf(variants, { kind: 'circle', r: 1 }, true), 0);
  assert.equal(variantName(variants[1]!, true, 1), 'box');
});

test('hostile keys are keys', () => {
  const schema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"integer"}},"required":["__proto__"]}');
  const as = shape(schema, schema);
  assert.deepEqual(as.kind === 'object' && as.properties.map((it) => it.name), ['__proto__', 'constructor']);
  assert.deepEqual(Object.keys(joined(schema, schema)), ['type', 'properties', 'required']);
  assert.equal(limits({ minimum: 1, maximum: 5 }), '1 to 5');
});

test('properties of allOf are joined, required ones first', () => {
  const as = shape({ allOf: [{ properties: { a: true, b: true }, required: ['b'] }, { type: 'object', properties: { c: true }, required: ['c'] }] }, root);
  assert.deepEqual(as.kind === 'object' && as.properties.map((it) => [it.name, it.required]).sort(), [['a', false], ['b', true], ['c', true]]);
  assert.deepEqual(as.kind === 'object' && as.properties.map((it) => it.required), [true, true, false]);
});

test('a condition with a pattern is not checked here, because the pattern is not run', () => {
  const schema = { type: 'object', if: { properties: { server: { pattern: '^builtin:' } }, required: ['server'] }, then: { properties: { transport: { type: 'null' } } }, not: { properties: { name: { pattern: '^x' } }, required: ['name'] }, properties: { kind: { oneOf: [{ type: 'string', pattern: '^a' }, { type: 'string', pattern: '^b' }] }, size: { if: { type: 'integer' }, then: { minimum: 1 } } } };
  assert.deepEqual([...problems(schema, { server: 'far', transport: 'http', name: 'n', kind: 'b' })], []);
  assert.deepEqual([...problems(schema, { size: 0 }).keys()], ['/size']);
});
