// Links to a tool with its arguments, and how secrets stay out of them.
import { isSecretName } from './foreign.ts';
import { href } from './route.svelte.ts';
import { joined, type Schema } from './schema.ts';

/** Longest JSON that stands in an address as it is; longer ones are packed. */
const MAX_PLAIN_CHARS = 2_048;

/** Takes secret fields out of a value. `left` has the names of what was taken. */
export function withoutSecrets(value: unknown, schema: Schema, root: Schema, left: string[] = [], depth = 0): unknown {
  if (depth > 32 || typeof value !== 'object' || value === null) return value;
  let it: Record<string, any> = {};
  try { it = joined(schema, root); } catch { /* too big to look into: names decide */ }
  if (Array.isArray(value)) return value.map((each, at) => withoutSecrets(each, it.prefixItems?.[at] ?? it.items ?? true, root, left, depth + 1));
  const kept = Object.entries(value).filter(([name, each]) => {
    const own = (Object.hasOwn(it.properties ?? {}, name) ? it.properties[name] : undefined) as Record<string, any> | undefined;
    const secret = own?.format === 'password' || own?.writeOnly === true || (typeof each === 'string' && isSecretName(name));
    if (secret) left.push(name);
    return !secret;
  });
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutSecrets(each, it.properties?.[name] ?? true, root, left, depth + 1)]));
}

const toBase64Url = (raw: Uint8Array): string => btoa(Array.from(raw, (it) => String.fromCharCode(it)).join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const fromBase64Url = (text: string): Uint8Array => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (it) => it.charCodeAt(0));
const through = async (raw: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> =>
  new Uint8Array(await new Response(new Blob([raw as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, BufferSource>) as BodyInit as ReadableStream).arrayBuffer());

export async function packArguments(value: unknown): Promise<Record<string, string>> {
  const text = JSON.stringify(value);
  if (text === undefined || text === '{}') return {};
  if (text.length <= MAX_PLAIN_CHARS) return { args: text };
  return { argz: toBase64Url(await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'))) };
}

/** Reads the arguments of an address; undefined if there are none or they cannot be read. */
export async function unpackArguments(query: URLSearchParams): Promise<unknown> {
  try {
    const packed = query.get('argz');
    const text = packed ? new TextDecoder().decode(await through(fromBase64Url(packed), new DecompressionStream('deflate-raw'))) : query.get('args');
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

export const toolLink = async (toolId: string, value: unknown): Promise<string> => href(['tools', toolId], await packArguments(value));
