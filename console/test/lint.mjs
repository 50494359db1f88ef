// Rules that the compiler does not know: no markup from strings, no inline styles, no cookies, short files, plain words.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAX_LINES = 200;
const RULES = [
  [/\{@html/, 'no `{@html}`: text of others never becomes markup'],
  [/\b(innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment)\b|document\.write/, 'no markup from strings'],
  [/\beval\(|new Function\(|new Worker\(/, 'the policy of the page refuses this'],
  [/<[a-z][^>]*\sstyle="/, 'use `style:name={…}`; the policy refuses inline styles'],
  [/document\.cookie/, 'no cookies'],
  [/new EventSource/, 'read events with fetch: EventSource sends no token'],
  [/\b(is|are) resting\b|\brests\b/, 'a breaker is open, not resting'],
  [/\bTODO\b|\bFIXME\b/, 'do it or leave it'],
];
const root = fileURLToPath(new URL('../src', import.meta.url));
const found = [];
for (const name of readdirSync(root, { recursive: true })) {
  if (!/\.(ts|svelte|css)$/.test(name)) continue;
  const text = readFileSync(join(root, name), 'utf8');
  const lines = text.split('\n');
  if (lines.length > MAX_LINES + 1 && !name.endsWith('.d.ts')) found.push(`${name}: ${lines.length} lines; ${MAX_LINES} are enough for one noun`);
  lines.forEach((line, at) => { for (const [rule, why] of RULES) if (rule.test(line)) found.push(`${name}:${at + 1}: ${why}`); });
}
for (const each of found) console.error(each);
if (found.length) process.exit(1);
console.log('lint: nothing found');
