// Choices of the person at this browser: theme, density, time zone, single keys, remembered arguments.

export interface Prefs { theme: 'auto' | 'light' | 'dark'; density: 'dense' | 'roomy'; zone: 'local' | 'utc'; keys: boolean; remember: boolean }
const KEY = 'wharf.prefs';
const DEFAULTS: Prefs = { theme: 'auto', density: 'dense', zone: 'local', keys: true, remember: true };

function read(): Prefs {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Prefs>) };
  } catch {
    return { ...DEFAULTS };
  }
}

export const prefs = $state<Prefs>(read());

export function applyPrefs(): void {
  document.documentElement.dataset.theme = prefs.theme;
  document.documentElement.dataset.density = prefs.density;
}

export function setPref<K extends keyof Prefs>(key: K, value: Prefs[K]): void {
  prefs[key] = value;
  applyPrefs();
  try {
    localStorage.setItem(KEY, JSON.stringify(prefs));
  } catch { /* private windows may refuse storage; the choice then lasts as long as the page */ }
}
