// The console is an MCP client of its own gateway (2026-07-28, no session): progress, log lines and questions come on the
// stream of the call, and closing the stream cancels it.
import { ApiError, failure } from './api.ts';
import { session } from './session.svelte.ts';
import { sse } from './sse.ts';
import type { Json } from './types.ts';

const VERSION = '2026-07-28';
/** Rounds of questions that one request may ask. */
const MAX_ROUNDS = 10;
const META = 'io.modelcontextprotocol/';

export interface Progress { progress: number; total?: number; message?: string }
export interface InputRequest { method: string; params: Record<string, any> }
export type InputResponses = Record<string, Json>;
export interface Watcher {
  onprogress?: (progress: Progress) => void;
  onlog?: (line: { level: string; logger?: string; data: Json }) => void;
  onnotification?: (method: string, params: any) => void;
  /** Answers the questions of a server, by their keys. */
  answer?: (requests: Record<string, InputRequest>) => Promise<InputResponses>;
  signal?: AbortSignal;
  /** Wharf's own `_meta` for a round of the request, such as the id of the call. */
  meta?: (round: number) => Record<string, Json>;
}

export class RpcFailure extends Error {
  readonly code: number;
  readonly data: any;
  constructor(error: { code: number; message: string; data?: unknown }) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

let next = 1;

/** Sends one request and answers its questions until it is complete. */
export async function ask(method: string, params: Record<string, unknown>, watcher: Watcher = {}): Promise<any> {
  let more: Record<string, unknown> = {};
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const result = await once(method, { ...params, ...more }, watcher, round);
    if (result?.resultType !== 'input_required') return result;
    const questions = (result.inputRequests ?? {}) as Record<string, InputRequest>;
    if (!watcher.answer) throw new RpcFailure({ code: -32603, message: 'the server asks back, and nothing here can answer' });
    more = { inputResponses: await watcher.answer(questions), ...(result.requestState === undefined ? {} : { requestState: result.requestState }) };
  }
  throw new RpcFailure({ code: -32603, message: `the server asked back more than ${MAX_ROUNDS} times` });
}

async function once(method: string, params: Record<string, unknown>, watcher: Watcher, round: number): Promise<any> {
  const id = next++;
  const meta = {
    [`${META}protocolVersion`]: VERSION,
    [`${META}clientInfo`]: { name: 'wharf-console', version: session.info?.version ?? '0' },
    [`${META}clientCapabilities`]: watcher.answer ? { elicitation: { form: {}, url: {} }, sampling: {} } : {},
    ...(watcher.onlog ? { [`${META}logLevel`]: 'debug' } : {}),
    ...(watcher.onprogress ? { progressToken: id } : {}),
    ...watcher.meta?.(round),
  };
  const name = (params.name ?? params.uri) as string | undefined;
  const response = await fetch('/mcp', {
    method: 'POST',
    headers: {
      ...session.headers(), 'content-type': 'application/json', accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION, 'mcp-method': method, ...(name !== undefined && NAMED.has(method) ? { 'mcp-name': headerValue(name) } : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }),
    signal: watcher.signal,
    credentials: 'omit',
  });
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok && !type.startsWith('application/json')) throw await failure(response);
  if (type.startsWith('text/event-stream') && response.body) return read(response.body, id, watcher);
  const answer = await response.json().catch(() => null);
  if (answer?.error || answer?.result !== undefined) return settle(answer);
  throw new ApiError({ type: 'about:blank', title: 'No answer', status: response.status, detail: 'the gateway sent no JSON-RPC answer', hint: null, request_id: null });
}

const NAMED = new Set(['tools/call', 'prompts/get', 'resources/read']);
/** Headers are ASCII; other names are sent as the protocol's base64 form. */
const headerValue = (name: string): string =>
  /^[!-~](?:[ -~]*[!-~])?$/.test(name) && !name.startsWith('=?base64?') ? name : `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(name)))}?=`;

async function read(body: ReadableStream<Uint8Array>, id: number, watcher: Watcher): Promise<any> {
  for await (const { data } of sse(body)) {
    const message = JSON.parse(data);
    if (message.method === undefined) {
      if (message.id === id) return settle(message);
      continue;
    }
    if (message.method === 'notifications/progress') watcher.onprogress?.(message.params);
    else if (message.method === 'notifications/message') watcher.onlog?.(message.params);
    watcher.onnotification?.(message.method, message.params);
  }
  throw new ApiError({ type: 'about:blank', title: 'No answer', status: 0, detail: 'the gateway closed the stream without an answer', hint: 'the journal may have the result; see Calls', request_id: null });
}

function settle(message: { result?: any; error?: any }): any {
  if (message.error) throw new RpcFailure(message.error);
  return message.result;
}
