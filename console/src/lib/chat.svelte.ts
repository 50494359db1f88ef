// A conversation with the agent: sends a message, follows the run as it happens, and decides about calls that wait.
import { all, failure, get, post, problemOf, request, type ApiError } from './api.ts';
import { fromEntries } from './entries.ts';
import { session } from './session.svelte.ts';
import { sse } from './sse.ts';
import type { Conversation } from './types.ts';

import type { ApprovalPart, Message, Part, ToolPart } from './entries.ts';
export type { ApprovalPart, Message, Part, ToolPart };
export const MAX_MESSAGE_CHARS = 5_000;

export class Chat {
  threads = $state.raw<Conversation[] | null>(null);
  threadsFailed = $state.raw<ApiError | null>(null);
  id = $state<string | null>(null);
  messages = $state<Message[]>([]);
  busy = $state(false);
  failed = $state.raw<ApiError | null>(null);
  usage = $state('');
  #abort: AbortController | null = null;
  #lastEvent = '';

  async readThreads(): Promise<void> {
    try { this.threads = await all('/api/v1/conversations', { query: { limit: 100 } }); this.threadsFailed = null; } catch (error) { this.threadsFailed = problemOf(error); }
  }

  async open(id: string | null): Promise<void> {
    if (id === this.id) return;
    this.stop();
    Object.assign(this, { id, messages: [], failed: null, usage: '' });
    if (!id) return;
    try {
      const path = { conversation_id: id };
      const [thread, entries] = await Promise.all([get('/api/v1/conversations/{conversation_id}', { path }), all('/api/v1/conversations/{conversation_id}/entries', { path })]);
      if (this.id !== id) return;
      // A run under way tells its events again from the first.
      const isRunning = thread.state === 'running';
      this.messages = fromEntries(isRunning ? entries.filter((it) => it.kind === 'user' || it.run_id !== thread.run_id) : entries);
      if (thread.state === 'waiting') await this.#readApprovals(id);
      if (isRunning) await this.#follow('');
    } catch (error) { this.failed = problemOf(error); }
  }

  /** Adds the questions that wait for an answer. */
  async #readApprovals(id: string): Promise<void> {
    const waiting = (await all('/api/v1/approvals')).filter((it) => it.conversation_id === id && it.decision === null);
    if (this.messages.at(-1)?.role !== 'assistant') this.messages.push({ role: 'assistant', parts: [] });
    for (const data of waiting) this.#take('approval_request', data);
  }

  stop(): void {
    this.#abort?.abort();
    if (this.id && this.busy) post('/api/v1/conversations/{conversation_id}/cancel', { path: { conversation_id: this.id } }).catch(() => undefined);
  }

  async send(text: string): Promise<void> {
    this.messages.push({ role: 'user', parts: [{ kind: 'text', text }] }, { role: 'assistant', parts: [] });
    this.busy = true;
    this.failed = null;
    this.#abort = new AbortController();
    this.#lastEvent = '';
    try {
      const response = await fetch('/api/v1/chat', { method: 'POST', headers: { ...session.headers(), 'content-type': 'application/json', accept: 'text/event-stream' }, body: JSON.stringify({ message: text, ...(this.id ? { conversation_id: this.id } : {}) }), signal: this.#abort.signal, credentials: 'omit' });
      if (!response.ok || !response.body) throw await failure(response);
      this.id = response.headers.get('x-conversation-id') ?? this.id;
      await this.#read(response.body);
    } catch (error) {
      if (this.#abort.signal.aborted) this.#parts().push({ kind: 'note', text: 'Stopped.' });
      else this.failed = problemOf(error);
    }
    this.busy = false;
    void this.readThreads();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    for await (const { event, data, id } of sse(body)) {
      if (id !== null) this.#lastEvent = id;
      this.#take(event, JSON.parse(data));
      if (event === 'done') return;
    }
  }

  /** Follows the run under way, from the event after `from`. */
  async #follow(from: string): Promise<void> {
    if (!this.id || this.busy) return;
    if (this.messages.at(-1)?.role !== 'assistant') this.messages.push({ role: 'assistant', parts: [] });
    this.busy = true;
    this.#abort = new AbortController();
    try {
      const response = await fetch(`/api/v1/conversations/${encodeURIComponent(this.id)}/stream`, { headers: { ...session.headers(), accept: 'text/event-stream', ...(from ? { 'last-event-id': from } : {}) }, signal: this.#abort.signal, credentials: 'omit' });
      if (!response.ok) throw await failure(response);
      if (response.status !== 204 && response.body) await this.#read(response.body);
    } catch (error) { if (!this.#abort.signal.aborted) this.failed = problemOf(error); }
    this.busy = false;
  }

  /** Decides about one exact call: the digest names its arguments, so nothing else can be let through. */
  async decide(part: ApprovalPart, decision: 'allow' | 'deny', scope: 'once' | 'tool' = 'once'): Promise<void> {
    part.failed = '';
    try {
      await post('/api/v1/approvals/{approval_id}', { path: { approval_id: part.id }, body: { decision, scope, digest: part.digest } });
      part.decision = decision;
      // A run that waits has left its stream; it goes on when everything is decided.
      if (!this.busy && !this.messages.at(-1)?.parts.some((it) => it.kind === 'approval' && it.decision === null)) await this.#follow(this.#lastEvent);
    } catch (error) { part.failed = problemOf(error).message; }
  }

  #parts(): Part[] {
    return this.messages.at(-1)!.parts;
  }

  #take(event: string, data: Record<string, any>): void {
    const parts = this.#parts();
    const end = parts.at(-1);
    if (event === 'response_delta') {
      if (end?.kind === 'text') end.text += data.delta; else parts.push({ kind: 'text', text: String(data.delta) });
    } else if (event === 'thinking') {
      if (end?.kind === 'thinking') end.text += data.content; else parts.push({ kind: 'thinking', text: String(data.content) });
    } else if (event === 'tool_call') this.#tool(parts, data);
    else if (event === 'approval_request') parts.push({ kind: 'approval', id: data.approval_id, tool: data.tool_id ?? data.tool_name, args: data.arguments, digest: data.digest ?? data.arguments_hash, why: String(data.why ?? ''), expiresAt: data.expires_at ?? null, decision: null, failed: '' });
    else if (event === 'error') parts.push({ kind: 'error', text: String(data.message ?? data.error_type), hint: data.hint });
    else if (event === 'reset') for (let at = parts.length - 1; at >= 0 && parts[at]!.kind === 'text'; at--) parts.splice(at, 1);
    else if (event === 'done') {
      if (data.final_output && !parts.some((it) => it.kind === 'text')) parts.push({ kind: 'text', text: String(data.final_output) });
      if (data.success === false && !parts.some((it) => it.kind === 'error')) parts.push({ kind: 'error', text: `The run ended: ${data.status}` });
      const used = data.usage ?? {};
      this.usage = [used.input_tokens != null ? `${used.input_tokens} in` : '', used.output_tokens != null ? `${used.output_tokens} out` : ''].filter(Boolean).join(', ');
      this.id = data.conversation_id ?? this.id;
    }
  }

  #tool(parts: Part[], data: Record<string, any>): void {
    const known = parts.find((it): it is ToolPart => it.kind === 'tool' && it.id === data.call_id);
    const next: ToolPart = { kind: 'tool', id: data.call_id, name: data.tool_name, source: data.source ?? String(data.tool_name).split('__')[0], args: data.arguments, status: data.status, result: data.result, error: data.error, seconds: data.execution_duration, startedAt: known?.startedAt ?? Date.now() };
    if (known) Object.assign(known, next, { source: data.source ?? known.source }); else parts.push(next);
  }
}

export const rename = (id: string, title: string) => request('patch', '/api/v1/conversations/{conversation_id}', { path: { conversation_id: id }, body: { title } });
export const remove = (id: string) => request('delete', '/api/v1/conversations/{conversation_id}', { path: { conversation_id: id } });

export function toMarkdown(messages: Message[]): string {
  return messages.map(({ role, parts }) => `## ${role === 'user' ? 'You' : 'Agent'}\n\n${parts.map((it) => (it.kind === 'tool' ? `**${it.name}** (${it.status})\n\n\`\`\`json\n${JSON.stringify(it.args, null, 2)}\n\`\`\`` : it.kind === 'approval' ? `*Asked to allow ${it.tool}: ${it.decision ?? 'open'}*` : it.text)).join('\n\n')}`).join('\n\n');
}
