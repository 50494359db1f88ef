// Numbers of the last minutes or hours, read again while they are looked at.
import { get, problemOf, type ApiError } from './api.ts';
import type { Stats } from './types.ts';

export type Numbers = (number | null)[];
const STEP: Record<number, number> = { 900: 15, 3600: 60, 86400: 900 };
const REREAD_MS = 5_000;

export class StatsReader {
  stats = $state.raw<Stats | null>(null);
  error = $state.raw<ApiError | null>(null);

  /** Reads now, once something is followed. */
  read: () => Promise<void> = async () => undefined;

  /** Reads now and every few seconds while the page is seen. Returns how to stop. */
  follow(window: number, by: 'source' | 'tool', source: string): () => void {
    this.read = async () => {
      if (document.hidden && this.stats) return;
      try {
        this.stats = await get('/api/v1/stats', { query: { window, step: STEP[window] ?? 60, by, source } });
        this.error = null;
      } catch (error) { this.error = problemOf(error); }
    };
    void this.read();
    const timer = setInterval(() => void this.read(), REREAD_MS);
    return () => clearInterval(timer);
  }
}

/** Adds up series place by place; a place without any number stays empty. */
export function sum(lists: Numbers[]): Numbers {
  const length = Math.max(0, ...lists.map((it) => it.length));
  return Array.from({ length }, (_, at) => lists.reduce<number | null>((all, list) => (list[at] == null ? all : (all ?? 0) + list[at]), null));
}
export const most = (lists: Numbers[]): Numbers => {
  const length = Math.max(0, ...lists.map((it) => it.length));
  return Array.from({ length }, (_, at) => lists.reduce<number | null>((all, list) => (list[at] == null ? all : Math.max(all ?? 0, list[at])), null));
};
export const total = (list: Numbers): number => list.reduce<number>((all, it) => all + (it ?? 0), 0);
export const last = (list: Numbers): number | null => list.findLast((it) => it != null) ?? null;
