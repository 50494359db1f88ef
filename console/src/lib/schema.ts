// What a JSON Schema (2020-12) asks for, as a form sees it. Whatever has no shape here is entered as JSON, so every tool can
// be called. Absent, null and empty are three different things, and the form never makes one of another.

export type Keywords = { [keyword: string]: any };
export type Schema = boolean | Keywords;
export interface Property { name: string; schema: Schema; required: boolean }
export type Shape =
  | { kind: 'choice'; options: { value: unknown; label: string }[] }
  | { kind: 'nullable'; inner: Schema }
  | { kind: 'variants'; variants: Schema[] }
  | { kind: 'object'; properties: Property[]; rest: Schema; names?: Schema }
  | { kind: 'array'; first: Schema[]; rest: Schema }
  | { kind: 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'json' };

/** Schemas that one place may be joined from. More is an attack, or at least no form. */
const MAX_JOINS = 300;
export const MAX_DEPTH = 32;
export const MAX_NODES = 2_000;
/** A longer list is no help to choose from: such a value is entered as JSON. */
const MAX_OPTIONS = 500;

class TooBig extends Error {}

/** A schema with its references followed and its `allOf` joined. A circle of references ends as `true`. */
export function joined(schema: Schema | undefined, root: Schema, seen: readonly string[] = [], budget = { left: MAX_JOINS }): Keywords {
  if (typeof schema !== 'object' || schema === null) return {};
  if (--budget.left < 0) throw new TooBig();
  const { $ref, allOf, ...own } = schema;
  let all: Keywords = own;
  if (typeof $ref === 'string' && !seen.includes($ref)) all = join(all, joined(lookup($ref, root), root, [...seen, $ref], budget));
  for (const part of Array.isArray(allOf) ? allOf : []) all = join(all, joined(part, root, seen, budget));
  return all;
}

function join(one: Keywords, other: Keywords): Keywords {
  const both = { ...other, ...one };
  if (one.properties && other.properties) both.properties = { ...other.properties, ...one.properties };
  if (one.required && other.required) both.required = [...new Set([...one.required, ...other.required])];
  return both;
}

function lookup(reference: string, root: Schema): Schema {
  if (!reference.startsWith('#')) return true;
  const pointer = decodeURIComponent(reference.slice(1));
  if (pointer !== '' && !pointer.startsWith('/')) return anchored(root, pointer, { left: MAX_NODES }) ?? true;
  const steps = pointer.split('/').slice(1).map((it) => it.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce<any>((it, step) => (it != null && Object.hasOwn(Object(it), step) ? it[step] : undefined), root) ?? true;
}

function anchored(schema: unknown, name: string, budget: { left: number }): Schema | undefined {
  if (typeof schema !== 'object' || schema === null || --budget.left < 0) return undefined;
  if ((schema as Keywords).$anchor === name) return schema as Schema;
  for (const part of Object.values(schema)) {
    const found = anchored(part, name, budget);
    if (found !== undefined) return found;
  }
  return undefined;
}

const label = (value: unknown, title?: unknown): string => (typeof title === 'string' ? title : typeof value === 'string' ? value : JSON.stringify(value));

export function shape(schema: Schema, root: Schema): Shape {
  try {
    return shapeOf(joined(schema, root), root);
  } catch {
    return { kind: 'json' };
  }
}

function shapeOf(it: Keywords, root: Schema): Shape {
  if ('const' in it) return { kind: 'choice', options: [{ value: it.const, label: label(it.const) }] };
  if (Array.isArray(it.enum) && it.enum.length > MAX_OPTIONS) return { kind: 'json' };
  if (Array.isArray(it.enum)) return { kind: 'choice', options: it.enum.map((value: unknown) => ({ value, label: label(value) })) };
  const variants: unknown = it.oneOf ?? it.anyOf;
  if (Array.isArray(variants) && variants.length) return union(it, variants as Schema[], root);
  if (Array.isArray(it.type)) return types(it);
  const type: unknown = it.type ?? (it.properties || it.required || it.patternProperties ? 'object' : it.items || it.prefixItems ? 'array' : undefined);
  switch (type) {
    case 'object': return object(it);
    case 'array': return { kind: 'array', first: Array.isArray(it.prefixItems) ? it.prefixItems : [], rest: it.items ?? true };
    case 'string': case 'number': case 'integer': case 'boolean': case 'null': return { kind: type };
    default: return { kind: 'json' };
  }
}

function union(it: Keywords, variants: Schema[], root: Schema): Shape {
  const { oneOf: _, anyOf: __, default: ___, title: ____, description: _____, ...common } = it;
  const each = variants.map((variant) => joined(variant, root));
  if (each.length > MAX_OPTIONS) return { kind: 'json' };
  if (each.every((one) => 'const' in one)) return { kind: 'choice', options: each.map((one) => ({ value: one.const, label: label(one.const, one.title) })) };
  const real = each.map((one) => join(one, common));
  const inner = real.filter((one) => one.type !== 'null');
  if (inner.length === 1 && real.length === 2) return { kind: 'nullable', inner: inner[0]! };
  return { kind: 'variants', variants: real };
}

function types(it: Keywords): Shape {
  const { title: _, default: __, description: ___, ...rest } = it;
  const all = (it.type as string[]).map((type) => ({ ...rest, type }));
  if (all.length === 1) return shapeOf({ ...it, type: all[0]!.type }, true);
  const inner = all.filter((one) => one.type !== 'null');
  if (inner.length === 1 && all.length === 2) return { kind: 'nullable', inner: inner[0]! };
  return { kind: 'variants', variants: all };
}

function object(it: Keywords): Shape {
  const required: string[] = Array.isArray(it.required) ? it.required : [];
  const named = Object.entries<Schema>(it.properties ?? {});
  const missing = required.filter((name) => !named.some(([known]) => known === name)).map((name): [string, Schema] => [name, true]);
  const properties = [...named, ...missing].map(([name, schema]) => ({ name, schema, required: required.includes(name) }));
  const patterns = Object.values<Schema>(it.patternProperties ?? {});
  // Without a word about other properties a form that offers them only confuses.
  const rest = it.additionalProperties ?? (patterns.length === 1 ? patterns[0]! : patterns.length > 1 ? true : properties.length === 0);
  return { kind: 'object', properties: properties.sort((a, b) => Number(b.required) - Number(a.required)), rest: rest === false && patterns.length ? patterns[0]! : rest, names: it.propertyNames };
}

/** What a field begins with once it is given: what is fixed, the default, or the least that fits. */
export function start(schema: Schema, root: Schema, useDefault = true, depth = 0): unknown {
  if (depth > 8) return undefined;
  let it: Keywords;
  try { it = joined(schema, root); } catch { return undefined; }
  if (useDefault && 'default' in it) return structuredClone(it.default);
  const as = shape(schema, root);
  switch (as.kind) {
    case 'choice': return as.options.length === 1 ? as.options[0]!.value : undefined;
    case 'variants': return start(as.variants[0] ?? true, root, useDefault, depth + 1);
    case 'nullable': return start(as.inner, root, useDefault, depth + 1);
    case 'object': {
      const given = as.properties.filter((each) => each.required).map((each) => [each.name, start(each.schema, root, false, depth + 1)]);
      return Object.fromEntries(given.filter(([, value]) => value !== undefined));
    }
    case 'array': return as.first.map((each) => start(each, root, false, depth + 1) ?? null);
    case 'null': return null;
    default: return undefined;
  }
}

export function variantName(schema: Schema, root: Schema, at: number): string {
  const it = joined(schema, root);
  const fixed = Object.values<any>(it.properties ?? {}).find((each) => each?.const !== undefined)?.const;
  if (typeof it.title === 'string') return it.title;
  if (fixed !== undefined) return String(fixed);
  if (it.const !== undefined) return label(it.const);
  const items = it.type === 'array' && typeof it.items?.type === 'string' ? ` of ${it.items.type}` : '';
  return typeof it.type === 'string' ? it.type + items : `variant ${at + 1}`;
}

/** Counts the fields that a form begins with; above the limit the whole is entered as JSON. */
export function isTooBig(schema: Schema, root: Schema): boolean {
  let left = MAX_NODES;
  const count = (it: Schema, depth: number): void => {
    if (--left < 0 || depth > MAX_DEPTH) throw new TooBig();
    const as = shapeOf(joined(it, root), root);
    if (as.kind === 'object') for (const each of as.properties) each.required ? count(each.schema, depth + 1) : left--;
    if (as.kind === 'variants') for (const each of as.variants) count(each, depth + 1);
  };
  try { count(schema, 0); } catch { return true; }
  return left < 0;
}

/** Describes the limits of a value in a few words: `1 to 5`, `at most 20 characters`. */
export function limits(it: Keywords): string {
  const parts: string[] = [];
  const range = (low: unknown, high: unknown, unit: string) => {
    if (low != null && high != null) parts.push(`${low} to ${high}${unit}`);
    else if (low != null) parts.push(`at least ${low}${low === 1 ? unit.replace(/s$/, '') : unit}`);
    else if (high != null) parts.push(`at most ${high}${unit}`);
  };
  range(it.minimum ?? (it.exclusiveMinimum != null ? `more than ${it.exclusiveMinimum}` : null), it.maximum ?? (it.exclusiveMaximum != null ? `less than ${it.exclusiveMaximum}` : null), '');
  range(it.minLength || null, it.maxLength, ' characters');
  range(it.minItems || null, it.maxItems, ' items');
  if (typeof it.pattern === 'string') parts.push(`pattern ${it.pattern.slice(0, 60)}`);
  return parts.join(', ').replace('at least more than', 'more than').replace('at most less than', 'less than');
}
