// REST. Every request carries the session; an error is a problem document, whatever went wrong. Addresses, queries, bodies and
// answers are those of /openapi.json: a route that changes does not compile.
import type { paths } from './openapi.d.ts';
import { session } from './session.svelte.ts';
import type { ProblemDocument } from './types.ts';

/** Longest wait for an answer that is not a stream. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Pause before a read is tried once more. */
const RETRY_MS = 250;
/** Pages that a list is read to, at 500 items each. */
const MAX_PAGES = 40;

export class ApiError extends Error {
  readonly problem: ProblemDocument;
  /** Seconds after which another try is welcome. */
  readonly retryAfter: number | null;
  constructor(problem: ProblemDocument, retryAfter: number | null = null) {
    super(problem.detail || problem.title);
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
  get status(): number {
    return this.problem.status;
  }
}

export const problemOf = (error: unknown): ApiError => {
  if (error instanceof ApiError) return error;
  const gone = error instanceof TypeError;
  const late = error instanceof DOMException && error.name === 'TimeoutError';
  const detail = late ? 'the gateway did not answer in time' : gone ? 'the gateway cannot be reached' : String(error instanceof Error ? error.message : error);
  return new ApiError({ type: 'about:blank', title: 'No answer', status: 0, detail, hint: gone ? 'check that `wharf serve` is running' : null, request_id: null });
};

export async function failure(response: Response): Promise<ApiError> {
  const after = Number(response.headers.get('retry-after'));
  const text = await response.text().catch(() => '');
  let problem: Partial<ProblemDocument> = {};
  try { problem = JSON.parse(text) as ProblemDocument; } catch { /* not ours: a proxy in between */ }
  if (response.status === 401) session.lost();
  const title = problem.title ?? response.statusText;
  return new ApiError({ type: 'about:blank', hint: null, request_id: null, ...problem, title, detail: problem.detail ?? (title || `status ${response.status}`), status: response.status }, after > 0 ? after : null);
}

/**
 * Reads once more if there was no answer. A browser ends every request when a network of its machine comes or goes, and a
 * server that wharf starts in a container brings one.
 */
async function sendAgain(error: unknown, send: () => Promise<Response>): Promise<Response> {
  if (!(error instanceof TypeError)) throw error;
  await new Promise((next) => setTimeout(next, RETRY_MS));
  return send();
}

type Method = 'get' | 'post' | 'patch' | 'delete';
/** The addresses that have this method. */
type PathOf<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never }[keyof paths];
type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<M, infer O> ? O : never;
type JsonIn<T> = T extends { content: { 'application/json': infer Value } } ? Value : undefined;
type Good<R> = { [S in keyof R & (200 | 201 | 202)]: JsonIn<R[S]> }[keyof R & (200 | 201 | 202)];
export type Answer<M extends Method, P extends keyof paths> = Operation<M, P> extends { responses: infer R } ? Good<R> : never;
type Body<M extends Method, P extends keyof paths> = Operation<M, P> extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;
type PathValues<M extends Method, P extends keyof paths> = Operation<M, P> extends { parameters: { path: infer V } } ? V : never;
type Loose = string | number | boolean | null | undefined;
type Query<M extends Method, P extends keyof paths> = Operation<M, P> extends { parameters: { query?: infer Q } } ? { [K in keyof Q]?: Loose } : never;
type Options<M extends Method, P extends keyof paths> = { query?: Query<M, P>; signal?: AbortSignal }
  & ([PathValues<M, P>] extends [never] ? unknown : { path: PathValues<M, P> })
  & ([Body<M, P>] extends [never] ? unknown : { body: Body<M, P> });
/** Options may be left out where none is required. */
type Optional<O> = Record<never, never> extends O ? [options?: O] : [options: O];
interface AnyOptions { query?: Record<string, Loose>; body?: unknown; path?: Record<string, string | number>; signal?: AbortSignal }

export async function request<M extends Method, P extends PathOf<M>>(method: M, path: P, ...given: Optional<Options<M, P>>): Promise<Answer<M, P>> {
  const options = (given[0] ?? {}) as AnyOptions;
  const set = Object.entries(options.query ?? {}).filter(([, value]) => value != null && value !== '').map(([key, value]) => [key, String(value)]);
  const search = new URLSearchParams(set).toString();
  const address = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path![name]!));
  const hasBody = options.body !== undefined || method === 'post';
  const signals = [AbortSignal.timeout(REQUEST_TIMEOUT_MS), ...(options.signal ? [options.signal] : [])];
  const send = () => fetch(address + (search ? `?${search}` : ''), {
    method: method.toUpperCase(),
    headers: { ...session.headers(), ...(hasBody ? { 'content-type': 'application/json' } : {}) },
    body: hasBody ? JSON.stringify(options.body ?? {}) : undefined,
    signal: AbortSignal.any(signals),
    credentials: 'omit',
  });
  const response = await (method === 'get' ? send().catch((error) => sendAgain(error, send)) : send());
  if (!response.ok) throw await failure(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer<M, P>;
}

export const get = <P extends PathOf<'get'>>(path: P, ...given: Optional<Options<'get', P>>): Promise<Answer<'get', P>> => request('get', path, ...given);
export const post = <P extends PathOf<'post'>>(path: P, ...given: Optional<Options<'post', P>>): Promise<Answer<'post', P>> => request('post', path, ...given);

/** The addresses of lists. */
export type ListPath = { [P in PathOf<'get'>]: Answer<'get', P> extends { items: unknown[]; next_cursor: string | null } ? P : never }[PathOf<'get'>];
export type Item<P extends ListPath> = Answer<'get', P> extends { items: (infer I)[] } ? I : never;

/** Reads all pages of a list. */
export async function all<P extends ListPath>(path: P, ...given: Optional<Options<'get', P>>): Promise<Item<P>[]> {
  const items: Item<P>[] = [];
  const options = (given[0] ?? {}) as AnyOptions;
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page++) {
    const part = (await get(path, ...([{ ...options, query: { limit: 500, ...options.query, cursor } }] as unknown as Optional<Options<'get', P>>))) as { items: Item<P>[]; next_cursor: string | null };
    items.push(...part.items);
    cursor = part.next_cursor;
    if (!cursor) break;
  }
  return items;
}
