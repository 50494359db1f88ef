// What the gateway has: sources, breakers, tools and running calls. Read once, then changed by events, and read again after
// a gap. Reads that are asked for while one runs are joined into one more.
import { all, problemOf, type ApiError, type Item, type ListPath } from './api.ts';
import { live } from './live.svelte.ts';
import { session } from './session.svelte.ts';
import { durationSeconds } from './time.ts';
import type { Breaker, GatewayEvent, RunningCall, Source } from './types.ts';

/** Least time between two reads of the same list. */
const REREAD_MS = 1_000;

class Listing<P extends ListPath> {
  items = $state.raw<Item<P>[] | null>(null);
  error = $state.raw<ApiError | null>(null);
  readAt = $state(0);
  #reading = false;
  #again = false;
  #path: P;
  constructor(path: P) { this.#path = path; }
  async read(): Promise<void> {
    if (this.#reading) { this.#again = true; return; }
    this.#reading = true;
    try {
      this.items = await all<ListPath>(this.#path) as Item<P>[];
      this.error = null;
      this.readAt = Date.now();
    } catch (error) {
      this.error = problemOf(error);
    }
    setTimeout(() => {
      this.#reading = false;
      if (this.#again) { this.#again = false; void this.read(); }
    }, REREAD_MS);
  }
}

class World {
  sources = new Listing('/api/v1/sources');
  connections = new Listing('/api/v1/connections');
  breakers = new Listing('/api/v1/breakers');
  tools = new Listing('/api/v1/tools');
  running = $state.raw<Map<string, RunningCall>>(new Map());
  ready = $state.raw<{ status: string; missing?: string[] }>({ status: 'ready' });
  breakerOf = $derived(new Map((this.breakers.items ?? []).map((it) => [it.service_name, it])));
  connectionOf = $derived(new Map((this.connections.items ?? []).map((it) => [it.server_name, it])));
  toolById = $derived(new Map((this.tools.items ?? []).map((it) => [it.tool_id, it])));
  toolByName = $derived(new Map((this.tools.items ?? []).map((it) => [it.name, it])));
  openBreakers = $derived((this.breakers.items ?? []).filter((it) => it.state !== 'CLOSED'));

  begin(): void {
    live.on((events) => this.#apply(events));
    this.reread();
    void this.#readReady();
    setInterval(() => { if (!document.hidden && session.state === 'in') void this.#readReady(); }, 10_000);
  }

  reread(): void {
    for (const list of [this.sources, this.connections, this.breakers, this.tools]) void list.read();
    void this.#readRunning();
  }

  #apply(events: GatewayEvent[]): void {
    const kinds = new Set(events.map((event) => event.kind));
    const has = (...of: string[]) => of.some((kind) => kinds.has(kind));
    if (has('hello', 'missed')) return this.reread();
    if (has('connection', 'session', 'health', 'source', 'catalog', 'listed', 'downloading')) { void this.sources.read(); void this.connections.read(); }
    if (has('breaker')) { void this.breakers.read(); void this.sources.read(); }
    if (has('catalog', 'listed', 'tool_changed')) void this.tools.read();
    if (has('ready')) this.ready = events.findLast((event) => event.kind === 'ready')!.data as World['ready'];
    if (has('begun', 'progress', 'call')) this.#count(events);
  }

  #count(events: GatewayEvent[]): void {
    const running = new Map(this.running);
    for (const { kind, at, source, data } of events) {
      if (kind === 'begun') running.set(data.request_id, { started_at: at, source: source ?? '', progress: null, ...(data as any) });
      else if (kind === 'call') running.delete(data.request_id);
      else if (kind === 'progress') {
        const one = running.get(data.request_id);
        if (one) running.set(data.request_id, { ...one, progress: data as any });
      }
    }
    this.running = running;
  }

  async #readRunning(): Promise<void> {
    try {
      const items = await all('/api/v1/running');
      this.running = new Map(items.map((it) => [it.request_id, it]));
    } catch { /* the lists of the page say that the gateway is away */ }
  }

  async #readReady(): Promise<void> {
    try {
      const response = await fetch('/ready', { credentials: 'omit' });
      this.ready = await response.json();
    } catch { /* the live stream says that the gateway is away */ }
  }
}
export const world = new World();

/** The name of a source in calls, tools, numbers and log lines. A registered source has an id that is not its name. */
export const keyOf = (source: Source): string => (source.origin === 'rest' ? source.name : source.id);

/** When an open breaker lets the next call through. */
export function retryAt(breaker: Breaker): number {
  return new Date(breaker.last_state_change).getTime() + durationSeconds(breaker.recovery_timeout) * 1_000;
}

/** What a server needs from its operator, most urgent first; null if nothing. */
export function nextStep(source: Source, breaker: Breaker | undefined): { text: string; kind: 'bad' | 'warn' | 'open' } | null {
  if (!source.enabled) return null;
  if (source.missing.length) return { text: `set ${source.missing.join(', ')}`, kind: 'warn' };
  if (source.error && /auth|unauthor|sign.?in|oauth/i.test(`${source.error.type} ${source.error.message}`)) return { text: 'sign in', kind: 'warn' };
  if (source.discovery === 'failed' || source.error) return { text: 'read the error', kind: 'bad' };
  if (breaker?.state === 'OPEN') return { text: 'reset the breaker', kind: 'open' };
  return null;
}

/** The state of a source in one word, with the tone it has. */
export function stateOf(source: Source, breaker: Breaker | undefined): { word: string; tone: string; icon: string } {
  if (!source.enabled || source.state === 'disabled') return { word: 'off', tone: 'soft', icon: 'off' };
  if (breaker?.state === 'OPEN') return { word: 'breaker open', tone: 'open', icon: 'pause' };
  if (breaker?.state === 'HALF-OPEN') return { word: 'half-open', tone: 'open', icon: 'pause' };
  if (source.missing.length) return { word: 'needs values', tone: 'warn', icon: 'key' };
  if (source.downloading) return { word: 'downloading', tone: 'soft', icon: 'down' };
  if (source.discovery === 'failed' || (source.error && source.connection_state !== 'connected')) return { word: 'failed', tone: 'bad', icon: 'x' };
  if (source.connection_state === 'connecting') return { word: 'connecting', tone: 'soft', icon: 'dots' };
  if (source.connection_state === 'connected') return source.health === 'unhealthy' || source.health === 'degraded' ? { word: 'failing', tone: 'warn', icon: 'warn' } : { word: 'connected', tone: 'ok', icon: 'check' };
  if (source.connection_state === 'degraded') return { word: 'degraded', tone: 'warn', icon: 'warn' };
  if (source.discovery === 'asleep' || source.lifecycle === 'transient' || source.discovery === 'done') return { word: 'asleep', tone: 'soft', icon: 'moon' };
  return { word: source.connection_state, tone: 'soft', icon: 'dots' };
}
