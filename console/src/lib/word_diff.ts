// Two texts as one, with the words that were added and removed. Nothing is cut: what is accepted has to be seen.

export type WordChange = 'same' | 'gone' | 'added';
export interface WordPart { change: WordChange; text: string }

/** Longer texts are compared by what they begin and end with alike. */
const MAX_WORDS = 40_000;
/** If more words differ, the texts are shown one after the other. */
const MAX_EDITS = 1_000;
/** Texts that share a smaller part of their words are different texts, which are hard to read word by word. */
const MIN_SHARED = 0.25;

/** Splits a text into words and the single characters between them. */
const words = (text: string): string[] => text.match(/[\p{L}\p{N}\p{M}]+|[^]/gu) ?? [];

/** Compares two texts by words. The parts without the added ones are `before`, those without the gone ones are `after`. */
export function wordDiff(before: string, after: string): WordPart[] {
  if (before === after) return before ? [{ change: 'same', text: before }] : [];
  if (before.length + after.length > 20 * MAX_WORDS) return whole([before], [after]);
  const [left, right] = [words(before), words(after)];
  const end = Math.min(left.length, right.length);
  let head = 0, tail = 0;
  while (head < end && left[head] === right[head]) head++;
  while (tail < end - head && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail++;
  const [one, other] = [left.slice(head, left.length - tail), right.slice(head, right.length - tail)];
  const [begin, rest] = [left.slice(0, head), left.slice(left.length - tail)];
  const parts = one.length && other.length && one.length + other.length <= MAX_WORDS ? shortest(one, other) : undefined;
  return join([
    { change: 'same', text: begin.join('') },
    ...(parts && areAlike(parts, countWords([...begin, ...rest])) ? parts : whole(one, other)),
    { change: 'same', text: rest.join('') },
  ]);
}

const whole = (left: string[], right: string[]): WordPart[] => [{ change: 'gone', text: left.join('') }, { change: 'added', text: right.join('') }];

const countWords = (texts: string[]): number => texts.filter((it) => /[\p{L}\p{N}]/u.test(it)).length;

/** Says whether enough words of both texts are the same: those of these parts and `others`. */
function areAlike(parts: WordPart[], others: number): boolean {
  const count = (change: WordChange): number => countWords(parts.filter((it) => it.change === change).map((it) => it.text));
  const same = others + count('same');
  return same >= MIN_SHARED * (same + Math.max(count('gone'), count('added')));
}

/** Finds the fewest edits with Myers' algorithm. Returns nothing if there are more than `MAX_EDITS`. */
function shortest(left: string[], right: string[]): WordPart[] | undefined {
  const rounds: Int32Array[] = [];
  const ends = new Int32Array(2 * MAX_EDITS + 3);
  const centre = MAX_EDITS + 1;
  for (let edits = 0; edits <= MAX_EDITS; edits++) {
    rounds.push(ends.slice(centre - edits - 1, centre + edits + 2));
    for (let line = -edits; line <= edits; line += 2) {
      const isDown = line === -edits || (line !== edits && ends[centre + line - 1]! < ends[centre + line + 1]!);
      let x = isDown ? ends[centre + line + 1]! : ends[centre + line - 1]! + 1;
      while (x < left.length && x - line < right.length && left[x] === right[x - line]) x++;
      ends[centre + line] = x;
      if (x >= left.length && x - line >= right.length) return walkBack(rounds, left, right);
    }
  }
  return undefined;
}

/** Follows the edits from the end of both texts to their start. */
function walkBack(rounds: Int32Array[], left: string[], right: string[]): WordPart[] {
  const parts: WordPart[] = [];
  let x = left.length, y = right.length;
  for (let edits = rounds.length - 1; edits >= 0; edits--) {
    const end = (line: number): number => rounds[edits]![line + edits + 1]!;
    const line = x - y;
    const isDown = line === -edits || (line !== edits && end(line - 1) < end(line + 1));
    const [fromX, fromLine] = isDown ? [end(line + 1), line + 1] : [end(line - 1), line - 1];
    const start = edits ? (isDown ? fromX : fromX + 1) : 0;
    while (x > start) { parts.push({ change: 'same', text: left[--x]! }); y--; }
    if (edits) parts.push(isDown ? { change: 'added', text: right[y - 1]! } : { change: 'gone', text: left[x - 1]! });
    [x, y] = [fromX, fromX - fromLine];
  }
  return parts.reverse();
}

/** Joins neighbours of the same kind, puts what is gone before what was added, and does not split a sentence at each space. */
function join(parts: WordPart[]): WordPart[] {
  const joined: WordPart[] = [];
  const pending = { gone: '', added: '', space: '' };
  const add = (change: WordChange, text: string): void => {
    const last = joined.at(-1);
    if (text && last?.change === change) last.text += text;
    else if (text) joined.push({ change, text });
  };
  const flush = (): void => {
    add('gone', pending.gone); add('added', pending.added); add('same', pending.space);
    pending.gone = pending.added = pending.space = '';
  };
  for (const { change, text } of parts) {
    if (change !== 'same') {
      if (pending.space) { pending.gone += pending.space; pending.added += pending.space; pending.space = ''; }
      pending[change] += text;
    } else if (pending.gone && pending.added && !pending.space && /^\s$/.test(text)) pending.space = text;
    else { flush(); add('same', text); }
  }
  flush();
  return joined;
}
