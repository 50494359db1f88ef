// Events as they happen. A browser has six connections for all tabs together, so the tab that holds the lock reads and
// passes on; when it closes, the next one reads. Pages are told once per frame, however many events there were.
import { failure } from './api.ts';
import { session } from './session.svelte.ts';
import { sse } from './sse.ts';
import { toRow, type CallRow } from './call_row.ts';
import type { GatewayEvent, LogLine } from './types.ts';

const MAX_CALLS = 10_000;
const MAX_LINES = 5_000;
/** A hidden tab has no frames: what waits for one is bounded too. */
const MAX_WAITING = 2_000;
const MAY_BE_DROPPED = new Set(['call', 'begun', 'progress', 'log', 'stderr']);
const MAX_RETRY_MS = 8_000;
/** With no tab visible, the stream is left after this time. */
const HIDDEN_MS = 60_000;
const LOCK = 'wharf.live';

type State = 'connecting' | 'live' | 'away';
type Message = { asks: true } | { state: State; retryAt: number; isHidden: boolean } | { batch: GatewayEvent[]; skipped: Record<string, number> };

class Live {
  /** Oldest first. Replaced as a whole, because `$state.raw` makes no proxies. */
  calls = $state.raw<CallRow[]>([]);
  lines = $state.raw<(LogLine & { seq: number })[]>([]);
  state = $state<State>('connecting');
  retryAt = $state(0);
  skipped = $state(0);
  total = $state(0);
  /** Grows with each gap: what was read before has to be read again. */
  gaps = $state(0);
  #seq = 0;
  /** Ends when this tab no longer reads for the others; null while it does not. */
  #lease: AbortController | null = null;
  /** Requests for the lock that are not granted yet. */
  #waits = new Set<'queue' | 'steal'>();
  /** Whether other tabs listen. A batch is copied for them only then. */
  #hasFollowers = false;
  #waiting: GatewayEvent[] = [];
  #frame = 0;
  #listeners = new Set<(events: GatewayEvent[]) => void>();
  #tabs = new BroadcastChannel(LOCK);
  #stop: AbortController | null = null;
  #wake: (() => void) | null = null;

  /** Calls back with the events of each frame. Returns how to stop. */
  on(listener: (events: GatewayEvent[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  follow(): void {
    let hidden: ReturnType<typeof setTimeout> | undefined;
    const notice = () => {
      clearTimeout(hidden);
      if (!document.hidden) { this.#tell({ asks: true }); this.#wake?.(); return; }
      // A visible tab takes over if there is one; otherwise the stream is left after a while.
      if (this.#lease) this.#tellState();
      hidden = setTimeout(() => this.#stop?.abort(), navigator.locks ? HIDDEN_MS : 0);
    };
    document.addEventListener('visibilitychange', notice);
    // Without TLS and off loopback there are no locks: then each visible tab reads for itself.
    if (!navigator.locks) { void this.#read(new AbortController()); return; }
    this.#tabs.onmessage = ({ data }: MessageEvent<Message>) => this.#hear(data);
    this.#lead(false);
    notice();
  }

  #hear(message: Message): void {
    if ('asks' in message) {
      this.#hasFollowers = true;
      if (this.#lease) this.#tellState();
    } else if ('batch' in message) this.#take(message.batch, message.skipped);
    else {
      if (this.state !== 'live' && message.state === 'live') this.gaps++;
      this.#become(message.state, message.retryAt);
      if (message.isHidden && !document.hidden && !this.#lease) this.#lead(true);
    }
  }

  /** Tries again now. */
  retry(): void { this.#wake?.(); }

  #tell(message: Message): void { this.#tabs.postMessage(message); }
  #tellState(): void { this.#tell({ state: this.state, retryAt: this.retryAt, isHidden: document.hidden }); }

  /** Reads for all tabs as soon as no other tab does, or takes over from a hidden one. */
  #lead(takesOver: boolean): void {
    const waits = takesOver ? 'steal' : 'queue';
    if (this.#waits.has(waits)) return;
    this.#waits.add(waits);
    const lease = new AbortController();
    const read = () => {
      this.#waits.delete(waits);
      this.#hasFollowers ||= takesOver;
      this.#lease = lease;
      return this.#read(lease);
    };
    navigator.locks.request(LOCK, { steal: takesOver }, read).catch((error: unknown) => {
      if (!(error instanceof DOMException) || error.name !== 'AbortError') throw error;
      // Another tab took over.
      lease.abort();
      if (this.#lease === lease) {
        this.#lease = null;
        this.#stop?.abort();
      }
      this.#lead(false);
    });
  }

  #become(state: State, retryAt = 0): void {
    this.state = state;
    this.retryAt = retryAt;
    if (this.#lease) this.#tellState();
  }

  async #read(lease: AbortController): Promise<void> {
    for (let wait = 250; !lease.signal.aborted; wait = Math.min(wait * 2, MAX_RETRY_MS)) {
      if (session.state === 'in' && (!document.hidden || this.state === 'connecting')) {
        try {
          this.#stop = new AbortController();
          // Past the browser's cache: it lets a second tab share the response of the first, which ends with the first.
          const response = await fetch('/api/v1/events?pace=100', { headers: session.headers(), signal: this.#stop.signal, credentials: 'omit', cache: 'no-store' });
          if (!response.ok || !response.body) throw await failure(response);
          this.#become('live');
          wait = 125;
          for await (const { data } of sse(response.body)) this.#message(JSON.parse(data) as GatewayEvent);
        } catch { /* away: tried again below */ }
      }
      if (lease.signal.aborted) return;
      const pause = wait * (0.75 + Math.random() / 2);
      this.#become('away', Date.now() + pause);
      // A hidden tab waits until it is seen.
      await new Promise<void>((resume) => { this.#wake = resume; if (!document.hidden) setTimeout(resume, pause); });
    }
  }

  #message(event: GatewayEvent): void {
    const batch = event.kind === 'batch' ? ((event.data.events ?? []) as GatewayEvent[]) : [event];
    const skipped = (event.kind === 'batch' ? event.data.skipped : undefined) as Record<string, number> | undefined;
    if (this.#hasFollowers) this.#tell({ batch, skipped: skipped ?? {} });
    this.#take(batch, skipped ?? {});
  }

  #take(batch: GatewayEvent[], skipped: Record<string, number>): void {
    for (const event of batch) this.#waiting.push(event);
    if (skipped.call) { this.skipped += skipped.call; this.total += skipped.call; }
    if (this.#waiting.length > MAX_WAITING) {
      this.#drop(this.#waiting.length - MAX_WAITING);
      this.gaps++;
    }
    this.#frame ||= requestAnimationFrame(() => this.#show());
  }

  /** Drops the oldest events, but neither states nor calls that failed. */
  #drop(count: number): void {
    let left = count;
    this.#waiting = this.#waiting.filter(({ kind, data }) => {
      if (left === 0 || !MAY_BE_DROPPED.has(kind) || (kind === 'call' && data.status !== 'success')) return true;
      left--;
      if (kind === 'call') { this.skipped++; this.total++; }
      return false;
    });
    // A flood of failures alone is bounded too.
    this.#waiting.splice(0, this.#waiting.length - 2 * MAX_WAITING);
  }

  #show(): void {
    this.#frame = 0;
    const events = this.#waiting;
    this.#waiting = [];
    const calls: CallRow[] = [], lines: (LogLine & { seq: number })[] = [];
    for (const event of events) {
      const { kind, at, source, data } = event;
      if (kind === 'call') calls.push(toRow(event));
      else if (kind === 'stderr' || kind === 'exception' || kind === 'log' || kind === 'wharf') lines.push({ seq: this.#seq++, at, source, kind, level: data.level ?? (kind === 'exception' ? 'error' : null), text: String(data.text ?? '') });
      // Each stream begins with `hello`: what happened between two streams was not told.
      else if (kind === 'missed' || kind === 'hello') this.gaps++;
    }
    this.total += calls.length;
    if (calls.length) this.calls = this.calls.concat(calls).slice(-MAX_CALLS);
    if (lines.length) this.lines = this.lines.concat(lines).slice(-MAX_LINES);
    for (const listener of this.#listeners) listener(events);
  }
}
export const live = new Live();
