// One call made from this page, over MCP: its progress, its log lines, its questions and how it ended.
import { ApiError, problemOf } from './api.ts';
import { ask, RpcFailure, type InputRequest, type InputResponses, type Progress } from './mcp.ts';
import type { Json } from './types.ts';
import type { Problems } from './validate.ts';

export interface Ending {
  kind: 'success' | 'tool-error' | 'failure' | 'cancelled' | 'refused';
  result?: any; message?: string; hint?: string | null; errorType?: string; sent?: string; problems?: Problems; retryAfter?: number | null;
}
export interface Question { key: string; request: InputRequest; settle: (answer: Json) => void }

const MAX_LINES = 500;
/** Calls that run at a time from all tabs of this browser; HTTP/1.1 gives six connections for a host. */
const MAX_CALLS = 4;

/** Random enough to be unique. `crypto.randomUUID` needs TLS or loopback. */
const randomId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(12)), (it) => it.toString(16).padStart(2, '0')).join('');

export class Run {
  /** Ids of the call. A server of 2026-07-28 that asks back is called anew for each round, with an id of its own. */
  readonly ids: string[] = [];
  readonly #id = `console-${randomId()}`;
  readonly startedAt = Date.now();
  state = $state<'waiting' | 'running' | 'over'>('waiting');
  progress = $state.raw<Progress | null>(null);
  lines = $state.raw<{ level: string; text: string }[]>([]);
  questions = $state.raw<Question[]>([]);
  ending = $state.raw<Ending | null>(null);
  tookMs = $state(0);
  #abort = new AbortController();

  constructor(method: string, params: Record<string, unknown>) {
    void this.#go(method, params);
  }

  cancel(): void { this.#abort.abort(); }

  async #go(method: string, params: Record<string, unknown>): Promise<void> {
    const work = async (): Promise<void> => {
      if (this.#abort.signal.aborted) return;
      this.state = 'running';
      const result = await ask(method, params, {
        signal: this.#abort.signal,
        meta: (round) => { this.ids[round] = round ? `${this.#id}-${round}` : this.#id; return { 'io.wharf/request_id': this.ids[round]! }; },
        onprogress: (progress) => (this.progress = progress),
        onlog: ({ level, data }) => (this.lines = [...this.lines, { level, text: typeof data === 'string' ? data : JSON.stringify(data) }].slice(-MAX_LINES)),
        answer: (requests) => this.#answer(requests),
      });
      this.ending = endOf(result);
    };
    try {
      await oneOf(MAX_CALLS, this.#abort.signal, work);
      this.ending ??= { kind: 'cancelled' };
    } catch (error) {
      this.ending = this.#abort.signal.aborted ? { kind: 'cancelled' } : failed(error);
    }
    this.questions = [];
    this.tookMs = Date.now() - this.startedAt;
    this.state = 'over';
  }

  async #answer(requests: Record<string, InputRequest>): Promise<InputResponses> {
    const entries = Object.entries(requests).map(([key, request]) => {
      if (request.method === 'roots/list') return Promise.resolve([key, { roots: [] }] as const);
      return new Promise<readonly [string, Json]>((resolve, reject) => {
        const settle = (answer: Json) => {
          this.questions = this.questions.filter((it) => it.key !== key);
          resolve([key, answer]);
        };
        this.#abort.signal.addEventListener('abort', () => reject(new DOMException('cancelled', 'AbortError')), { once: true });
        this.questions = [...this.questions, { key, request, settle }];
      });
    });
    return Object.fromEntries(await Promise.all(entries)) as InputResponses;
  }
}

/** Waits for one of `count` places that all tabs share. Without locks (no TLS, not loopback) there is no queue. */
async function oneOf(count: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  if (!navigator.locks) return work();
  const held = await navigator.locks.query();
  const taken = new Set((held.held ?? []).map((it) => it.name));
  const free = Array.from({ length: count }, (_, at) => `wharf.call.${at}`).find((name) => !taken.has(name));
  await navigator.locks.request(free ?? `wharf.call.${Math.floor(Math.random() * count)}`, { signal }, work);
}

function endOf(result: any): Ending {
  const problems = result?._meta?.['io.wharf/problems'];
  if (result?.isError && Array.isArray(problems)) return { kind: 'refused', result, problems: new Map(problems.map((it: any) => [String(it.path ?? ''), String(it.message)])) };
  return { kind: result?.isError ? 'tool-error' : 'success', result };
}

export function failed(error: unknown): Ending {
  if (error instanceof RpcFailure) {
    const data = error.data ?? {};
    const problems = Array.isArray(data.problems) ? new Map<string, string>(data.problems.map((it: any) => [String(it.path ?? ''), String(it.message)])) : undefined;
    return { kind: problems ? 'refused' : 'failure', message: error.message, hint: data.hint ?? null, errorType: data.type ?? data.error_type, sent: data.sent, retryAfter: data.retry_after ?? null, problems };
  }
  const { problem, retryAfter }: ApiError = problemOf(error);
  const problems = problem.problems?.some((it) => it.path !== undefined) ? new Map(problem.problems.map((it) => [String(it.path ?? ''), it.message])) : undefined;
  return { kind: problems ? 'refused' : 'failure', message: problem.detail, hint: problem.hint, errorType: problem.type, retryAfter, problems };
}
