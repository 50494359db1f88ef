// Checks a value against a schema in the browser, and says what is wrong at the place it belongs to. The gateway checks
// again, and its word counts more.
import { Validator, type OutputUnit } from '@cfworker/json-schema';
import { joined, type Keywords, type Schema } from './schema.ts';

/** Places by JSON pointer (`/place/city`; '' is the whole), each with what is wrong there. */
export type Problems = Map<string, string>;

const MAPS = new Set(['properties', '$defs', 'definitions', 'dependentSchemas']);
const VALUES = new Set(['const', 'enum', 'default', 'examples']);

/** Checks whether a part may have a pattern, itself or behind a reference. */
const mayMatch = (part: unknown): boolean => /"(pattern|patternProperties|\$ref|\$dynamicRef)":/.test(JSON.stringify(part) ?? '');

/** Takes out what must not run here: a stranger's regular expression can take for ever. Without its patterns a condition would
 * hold too often, so it goes too, and one of several variants becomes any of them. */
export function harmless(schema: unknown, isMap = false): any {
  if (Array.isArray(schema)) return schema.map((it) => harmless(it));
  if (typeof schema !== 'object' || schema === null) return schema;
  const out: Keywords = {};
  const parts = schema as Record<string, unknown>;
  const isUnsure = !isMap && 'if' in parts && mayMatch(parts.if);
  for (const [given, value] of Object.entries(schema)) {
    if (isUnsure && (given === 'if' || given === 'then' || given === 'else')) continue;
    if (!isMap && given === 'not' && mayMatch(value)) continue;
    const key = !isMap && given === 'oneOf' && !('anyOf' in parts) && /"(pattern|patternProperties)":/.test(JSON.stringify(value)) ? 'anyOf' : given;
    if (!isMap && (key === 'pattern' || key === 'patternProperties' || key === '$schema' || key === '$id')) continue;
    if (!isMap && (key === 'additionalProperties' || key === 'unevaluatedProperties') && 'patternProperties' in schema) continue;
    Object.defineProperty(out, key, { value: !isMap && VALUES.has(key) ? value : harmless(value, !isMap && MAPS.has(key)), enumerable: true, configurable: true, writable: true });
  }
  return out;
}

/** Checks whether joining any part of the document would explode. Then nothing is checked here. */
function explodes(schema: unknown, root: Schema, budget = { left: 5_000 }): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  if (--budget.left < 0) return true;
  if (!Array.isArray(schema)) try { joined(schema as Keywords, root); } catch { return true; }
  return Object.values(schema).some((part) => explodes(part, root, budget));
}

const prepared = new WeakMap<object, Validator | null>();
function validator(schema: Keywords): Validator | null {
  let known = prepared.get(schema);
  if (known === undefined) {
    known = explodes(schema, schema) ? null : new Validator(harmless(schema), '2020-12', false);
    prepared.set(schema, known);
  }
  return known;
}

function errorsOf(schema: Schema, value: unknown): OutputUnit[] {
  if (typeof schema !== 'object') return [];
  try {
    return validator(schema)?.validate(value === undefined ? null : JSON.parse(JSON.stringify(value))).errors ?? [];
  } catch {
    return [];
  }
}

/** The variant that a value belongs to: the one it fits, else the one that it misses least. */
export function variantOf(variants: Schema[], value: unknown, root: Schema): number {
  if (value === undefined) return 0;
  const { $defs, definitions } = typeof root === 'object' ? root : {};
  const misses = variants.map((it) => errorsOf(typeof it === 'object' ? { $defs, definitions, ...it } : it, value).length);
  return misses.indexOf(Math.min(...misses));
}

const WRAPPERS = new Set(['properties', 'items', 'prefixItems', 'allOf', 'anyOf', 'oneOf', '$ref', 'if', 'then', 'else', 'additionalProperties', 'dependentSchemas', 'unevaluatedProperties', 'unevaluatedItems']);
const UNION = /^(.*?\/(?:oneOf|anyOf))\/(\d+)/;

/** Of a union only what the nearest variant misses is worth saying. */
export function problems(schema: Schema, value: unknown): Problems {
  const found: Problems = new Map();
  const errors = errorsOf(schema, value);
  const tally = new Map<string, Map<string, number>>();
  for (const { keywordLocation } of errors) {
    const [, union, branch] = UNION.exec(keywordLocation) ?? [];
    if (!union || !branch) continue;
    const counts = tally.get(union) ?? new Map<string, number>();
    tally.set(union, counts.set(branch, (counts.get(branch) ?? 0) + 1));
  }
  for (const error of errors) {
    const [, union, branch] = UNION.exec(error.keywordLocation) ?? [];
    const counts = union ? tally.get(union) : undefined;
    if (counts && [...counts].sort((a, b) => a[1] - b[1])[0]![0] !== branch) continue;
    if (WRAPPERS.has(error.keyword) && !(error.keyword === 'additionalProperties' && error.error.includes('does not match additional'))) continue;
    const place = error.instanceLocation.replace(/^#/, '');
    const missing = error.keyword === 'required' ? /"(.*)"/.exec(error.error)?.[1] : undefined;
    const at = missing === undefined ? place : `${place}/${escape(missing)}`;
    if (!found.has(at)) found.set(at, missing === undefined ? words(error) : 'is required');
  }
  return found;
}

export const escape = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

function words({ keyword, error }: OutputUnit): string {
  const quoted = [.../"([^"]*)"/g[Symbol.matchAll](error)].map((it) => it[1]);
  const number = /(-?\d[\d.]*?)\)?\.?$/.exec(error)?.[1];
  switch (keyword) {
    case 'type': return `must be ${quoted.at(-1) ?? 'of another type'}`;
    case 'enum': case 'const': return 'is not one of the allowed values';
    case 'minLength': return `is too short${number ? ` (at least ${number})` : ''}`;
    case 'maxLength': return `is too long${number ? ` (at most ${number})` : ''}`;
    case 'minimum': case 'exclusiveMinimum': return `is too small${number ? ` (at least ${number})` : ''}`;
    case 'maximum': case 'exclusiveMaximum': return `is too large${number ? ` (at most ${number})` : ''}`;
    case 'format': return `is not a valid ${quoted.at(-1) ?? 'value'}`;
    case 'uniqueItems': return 'has an item twice';
    case 'additionalProperties': return 'has a property that is not allowed';
    default: return error.replace(/^Instance /, '').replace(/\.$/, '');
  }
}
