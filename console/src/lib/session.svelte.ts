// Who is at the page. A ticket behind `#` works once; the session it buys is kept for this tab (storage belongs to host
// and port, which a cookie does not) and handed to another tab of this origin that asks. No cookies.
import type { Role, SessionInfo } from './types.ts';

const KEY = 'wharf.session';
/** How long a new tab waits for another one to hand over its session. */
const HANDOVER_MS = 150;
const ROLES: Role[] = ['viewer', 'caller', 'operator', 'admin'];

class Session {
  /** `asked`: nobody is signed in. `ended`: somebody was, and the page behind keeps what was typed. */
  state = $state<'starting' | 'in' | 'asked' | 'ended' | 'away'>('starting');
  info = $state.raw<SessionInfo | null>(null);
  /** What was wrong with the last attempt. */
  refused = $state('');
  #channel = new BroadcastChannel(KEY);
  #holds = false;

  constructor() {
    this.#channel.onmessage = ({ data }) => {
      if (data === 'who' && this.held()) this.#channel.postMessage({ session: this.held() });
      if (data === 'out') { sessionStorage.removeItem(KEY); if (this.state === 'in') this.state = 'ended'; }
      if (data?.session && (this.state === 'asked' || this.state === 'ended')) void this.#use(data.session);
    };
  }

  held(): string | null { return sessionStorage.getItem(KEY); }
  headers(): Record<string, string> {
    const held = this.held();
    return held ? { authorization: `Bearer ${held}` } : {};
  }
  can(role: Role): boolean {
    return ROLES.indexOf(this.info?.principal.role ?? 'viewer') >= ROLES.indexOf(role);
  }

  /** Finds a session: one for the ticket in the address, that of this tab, that of another tab, or none is needed. */
  async begin(): Promise<void> {
    const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket');
    if (ticket) history.replaceState(null, '', location.pathname + '#/');
    try {
      if (ticket && (await this.trade(ticket))) return;
      if (this.held()) this.#hold();
      else {
        const other = await this.#fromAnotherTab();
        if (other) { sessionStorage.setItem(KEY, other); this.#hold(); }
      }
      if (await this.#read()) return;
      sessionStorage.removeItem(KEY);
      this.state = (await this.#read()) ? 'in' : 'asked';
      if (ticket && this.state === 'asked') this.refused = 'This link was used before, or is older than 5 minutes.';
    } catch {
      this.state = 'away';
      setTimeout(() => void this.begin(), 2_000);
    }
  }

  /** Trades a ticket or a token for a session. Neither is kept. */
  async trade(proof: string): Promise<boolean> {
    this.refused = '';
    const response = await fetch('/api/v1/session', { method: 'POST', headers: { authorization: `Bearer ${proof}`, 'content-type': 'application/json' }, body: '{}', credentials: 'omit' });
    if (!response.ok) {
      this.refused = response.status === 401 ? 'This token is not known to the gateway.' : `The gateway refused it (status ${response.status}).`;
      return false;
    }
    const { session } = (await response.json()) as { session: string };
    await this.#use(session);
    this.#channel.postMessage({ session });
    return this.state === 'in';
  }

  async #use(session: string): Promise<void> {
    sessionStorage.setItem(KEY, session);
    this.#hold();
    await this.#read();
  }

  async #read(): Promise<boolean> {
    const response = await fetch('/api/v1/session', { headers: this.headers(), credentials: 'omit' });
    if (response.status === 401) return false;
    if (!response.ok) throw new Error(String(response.status));
    this.info = (await response.json()) as SessionInfo;
    this.state = 'in';
    return true;
  }

  /** The gateway no longer knows this session. */
  lost(): void {
    if (this.state !== 'in') return;
    sessionStorage.removeItem(KEY);
    this.state = 'ended';
  }

  async signOut(): Promise<void> {
    await fetch('/api/v1/session', { method: 'DELETE', headers: this.headers(), credentials: 'omit' });
    sessionStorage.removeItem(KEY);
    this.#channel.postMessage('out');
    this.info = null;
    this.state = 'asked';
  }

  /** Holds the lock that tells new tabs that this one has a session, until the tab is closed. */
  #hold(): void {
    if (this.#holds || !navigator.locks) return;
    this.#holds = true;
    void navigator.locks.request(KEY, { mode: 'shared' }, () => new Promise(() => undefined));
  }

  /** Asks the other tabs. Waits only if one of them has a session, or if there are no locks that would say so. */
  async #fromAnotherTab(): Promise<string | null> {
    const locks = await navigator.locks?.query();
    if (locks && !locks.held?.some((it) => it.name === KEY)) return null;
    return new Promise((resolve) => {
      const asking = new BroadcastChannel(KEY);
      const done = (session: string | null) => { asking.close(); resolve(session); };
      asking.onmessage = ({ data }) => { if (data?.session) done(data.session as string); };
      asking.postMessage('who');
      setTimeout(() => done(null), HANDOVER_MS);
    });
  }
}
export const session = new Session();
