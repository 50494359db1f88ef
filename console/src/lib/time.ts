// Times and amounts as people read them.

export const seconds = (ms: number): string =>
  ms <= 0 ? '0 ms' : ms < 1 ? '<1 ms' : ms < 1_000 ? `${Math.round(ms)} ms` : ms < 10_000 ? `${(ms / 1_000).toFixed(2)} s` : ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;

export function ago(at: string | number, now: number): string {
  const past = Math.max(0, now - new Date(at).getTime()) / 1_000;
  if (past < 5) return 'now';
  if (past < 60) return `${Math.floor(past)} s ago`;
  if (past < 3_600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86_400) return `${Math.floor(past / 3_600)} h ago`;
  return `${Math.floor(past / 86_400)} d ago`;
}

/** One formatter for each form and zone: making one costs more than using it a hundred times. */
const formatters = new Map<string, Intl.DateTimeFormat>();
function format(at: string | number, utc: boolean, name: string, options: Intl.DateTimeFormatOptions): string {
  const key = name + utc;
  let formatter = formatters.get(key);
  if (!formatter) formatters.set(key, (formatter = new Intl.DateTimeFormat('en-GB', { ...options, ...(utc ? { timeZone: 'UTC' } : {}) })));
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : formatter.format(date);
}
export const clock = (at: string | number, utc = false): string => format(at, utc, 'clock', { hour12: false, hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 });
export const minute = (at: string | number, utc = false): string => format(at, utc, 'minute', { hour: '2-digit', minute: '2-digit' });
export const moment = (at: string | number, utc = false): string => format(at, utc, 'moment', { dateStyle: 'medium', timeStyle: 'medium' });

export const bytes = (count: number): string => (count < 1_000 ? `${count} B` : count < 1e6 ? `${(count / 1e3).toFixed(1)} KB` : `${(count / 1e6).toFixed(1)} MB`);
/** A time in whole units, such as `30 days`. */
export function span(seconds: number): string {
  const [unit, name] = ([[86_400, 'day'], [3_600, 'hour'], [60, 'minute']] as const).find(([each]) => seconds >= each && seconds % each === 0) ?? [1, 'second'];
  return plural(seconds / unit, name);
}
/** A size in binary units, as wharf.toml has them. */
export function size(count: number): string {
  const [unit, name] = ([[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']] as const).find(([each]) => count >= each) ?? [1, 'bytes'];
  return `${Number((count / unit).toFixed(1)).toLocaleString('en-US')} ${name}`;
}
export const plural = (count: number, one: string, many = `${one}s`): string => `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;

/** Seconds of an ISO 8601 duration such as `PT30S`; 0 for anything else. */
export function durationSeconds(text: string): number {
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(text);
  return parts ? Number(parts[1] ?? 0) * 86_400 + Number(parts[2] ?? 0) * 3_600 + Number(parts[3] ?? 0) * 60 + Number(parts[4] ?? 0) : 0;
}
