// The last arguments of each tool, without secret fields, and what need not be confirmed again before the page is left.
import { prefs } from './prefs.svelte.ts';

const MAX_SETS = 20;
const MAX_CHARS = 20_000;
const confirmed = new Set<string>();
export const allow = (toolId: string): void => { confirmed.add(toolId); };
export const allowed = (toolId: string): boolean => confirmed.has(toolId);

export function recent(toolId: string): unknown[] {
  try { return JSON.parse(localStorage.getItem(`wharf.args.${toolId}`) ?? '[]') as unknown[]; } catch { return []; }
}

export function remember(toolId: string, args: unknown): void {
  const text = JSON.stringify(args);
  if (!prefs.remember || text === '{}' || text.length > MAX_CHARS) return;
  const sets = [args, ...recent(toolId).filter((it) => JSON.stringify(it) !== text)].slice(0, MAX_SETS);
  try { localStorage.setItem(`wharf.args.${toolId}`, JSON.stringify(sets)); } catch { /* full: the newest are not remembered */ }
}

/** The tool whose form calls as soon as it opens: set by *Call again*. */
export const callOnOpen = { toolId: '' };
