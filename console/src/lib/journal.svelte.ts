// The calls of the journal and those that happen now, as one list. Filters stand in the address; the gateway applies them to
// the journal, the page to what is live.
import { get, problemOf, type ApiError } from './api.ts';
import { fromJournal, type CallRow } from './call_row.ts';

export const FILTERS = ['source', 'tool', 'status', 'via', 'principal', 'q', 'since', 'until'] as const;
const PAGE = 200;
const MAX_EMPTY_PAGES = 20;

export function matches(row: CallRow, query: URLSearchParams): boolean {
  for (const key of ['source', 'tool', 'status', 'via', 'principal'] as const) {
    const wanted = query.get(key);
    if (wanted && row[key] !== wanted) return false;
  }
  const [q, since, until] = [query.get('q')?.toLowerCase(), query.get('since'), query.get('until')];
  if (q && !`${row.id} ${row.source} ${row.tool} ${row.error}`.toLowerCase().includes(q)) return false;
  if (since && row.at < since) return false;
  return !(until && row.at > until);
}

/** The ids of the list from which a call was opened last, newest first: `[` and `]` walk along it. */
export const shownCalls = { ids: [] as string[] };

/** The calls that are marked for comparing. */
export const marks = $state<{ ids: string[] }>({ ids: [] });

export class Journal {
  rows = $state.raw<CallRow[]>([]);
  error = $state.raw<ApiError | null>(null);
  state = $state<'loading' | 'ready'>('loading');
  more = $state<string | null>(null);
  #run = 0;

  /** Reads the newest calls that fit; or, with `next`, those after the last ones. */
  async read(query: URLSearchParams, next = false): Promise<void> {
    const run = ++this.#run;
    if (!next) this.state = 'loading';
    const filters = Object.fromEntries(FILTERS.map((key) => [key, query.get(key)]));
    try {
      let page = await get('/api/v1/calls', { query: { ...filters, limit: PAGE, cursor: next ? this.more : null } });
      // A search is bounded in time: an empty page with a cursor means that it goes on.
      for (let more = 0; more < MAX_EMPTY_PAGES && page.items.length === 0 && page.next_cursor; more++) page = await get('/api/v1/calls', { query: { ...filters, limit: PAGE, cursor: page.next_cursor } });
      if (run !== this.#run) return;
      this.rows = next ? [...this.rows, ...page.items.map(fromJournal)] : page.items.map(fromJournal);
      this.more = page.next_cursor;
      this.error = null;
    } catch (error) {
      if (run === this.#run) this.error = problemOf(error);
    }
    if (run === this.#run) this.state = 'ready';
  }
}
