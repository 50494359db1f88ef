// Addresses live behind `#`, so the gateway never sees them, nor the arguments in them.

export interface Route { page: string; parts: string[]; query: URLSearchParams }

const decode = (text: string): string => {
  try { return decodeURIComponent(text); } catch { return text; }
};

export function parseHash(hash: string): Route {
  const text = hash.startsWith('#ticket=') ? '' : hash.replace(/^#\/?/, '');
  const mark = text.indexOf('?');
  const parts = (mark < 0 ? text : text.slice(0, mark)).split('/').filter(Boolean).map(decode);
  return { page: parts[0] ?? 'overview', parts: parts.slice(1), query: new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1)) };
}

export function href(parts: string[], query: Record<string, string | null | undefined> = {}): string {
  const set = Object.entries(query).filter((it): it is [string, string] => it[1] != null && it[1] !== '');
  const search = new URLSearchParams(set).toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${search ? `?${search}` : ''}`;
}

class Router {
  #hash = location.hash;
  now = $state.raw<Route>(parseHash(location.hash));
  constructor() {
    addEventListener('hashchange', () => this.#read());
  }
  /** Goes there at once: the browser's event comes later, and a key pressed until then would still mean the old page. */
  go(to: string): void {
    location.hash = to;
    this.#read();
  }
  /** Goes there without a step in the history. */
  replace(to: string): void {
    history.replaceState(null, '', to);
    this.#read();
  }
  #read(): void {
    if (this.#hash === location.hash) return;
    this.#hash = location.hash;
    this.now = parseHash(this.#hash);
  }
  /** Changes parts of the query without a step in the history. */
  query(changes: Record<string, string | null | undefined>): void {
    const all = { ...Object.fromEntries(this.now.query), ...changes };
    const path = this.now.page === 'overview' && !this.now.parts.length ? [] : [this.now.page, ...this.now.parts];
    const to = href(path, all);
    if (to === location.hash) return;
    this.replace(to);
  }
}
export const router = new Router();

/** Reads the part after a page's name. While another page loads, the old one keeps what it had. */
export function partOf(page: string): () => string {
  let last = '';
  return () => (router.now.page === page ? (last = router.now.parts[0] ?? '') : last);
}
