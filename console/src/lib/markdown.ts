// Markdown of models as a tree: what they write, no more (no HTML, no references, no footnotes). One pass over the lines and
// one over the characters of each, so that no text takes longer than its length.

export type Inline =
  | { kind: 'text' | 'code' | 'image'; text: string }
  | { kind: 'strong'; inside: Inline[] }
  | { kind: 'em'; inside: Inline[] }
  | { kind: 'del'; inside: Inline[] }
  | { kind: 'link'; href: string; inside: Inline[] };
export type Block =
  | { kind: 'paragraph'; inside: Inline[] }
  | { kind: 'heading'; depth: number; inside: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; ordered: boolean; items: Block[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

const MAX_DEPTH = 8;
const FENCE = /^\s{0,3}(```+|~~~+)/, HEADING = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/, RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/, QUOTE = /^\s{0,3}>\s?/, ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+/, DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

export function blocks(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  const found: Block[] = [];
  let at = 0;
  const take = (while_: (line: string) => boolean): string[] => { const from = at; while (at < lines.length && while_(lines[at]!)) at++; return lines.slice(from, at); };
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line)?.[1], heading = HEADING.exec(line);
    if (!line.trim()) at++;
    else if (fence) {
      at++;
      found.push({ kind: 'code', text: take((it) => !it.trimStart().startsWith(fence)).join('\n') });
      at++;
    } else if (heading) { found.push({ kind: 'heading', depth: heading[1]!.length, inside: inline(heading[2]!) }); at++; }
    else if (RULE.test(line)) { found.push({ kind: 'rule' }); at++; }
    else if (QUOTE.test(line) && depth < MAX_DEPTH) found.push({ kind: 'quote', blocks: blocks(take((it) => QUOTE.test(it)).map((it) => it.replace(QUOTE, '')).join('\n'), depth + 1) });
    else if (ITEM.test(line) && depth < MAX_DEPTH) found.push(list());
    else if (line.includes('|') && DELIMITER.test(lines[at + 1] ?? '') && (lines[at + 1] ?? '').includes('-')) found.push(table());
    else { at++; found.push({ kind: 'paragraph', inside: inline([line, ...take((it) => it.trim() !== '' && !FENCE.test(it) && !HEADING.test(it) && !ITEM.test(it) && !QUOTE.test(it))].join('\n')) }); }
  }
  return found;

  function list(): Block {
    const [, indent, mark] = ITEM.exec(lines[at]!)!;
    const items: Block[][] = [];
    while (at < lines.length) {
      const item = ITEM.exec(lines[at]!);
      if (!item || item[1]!.length > indent!.length + 1 || item[1]!.length < indent!.length || /\d/.test(item[2]!) !== /\d/.test(mark!)) break;
      const own = [lines[at++]!.slice(item[0].length)];
      const deeper = indent!.length + 2;
      own.push(...take((it) => it.trim() === '' ? /^\s{2,}/.test(lines[at + 1] ?? '') : it.length - it.trimStart().length >= deeper).map((it) => it.slice(Math.min(item[0].length, it.length - it.trimStart().length))));
      items.push(blocks(own.join('\n'), depth + 1));
    }
    return { kind: 'list', ordered: /\d/.test(mark!), items };
  }

  function table(): Block {
    const cells = (row: string): Inline[][] => row.trim().replace(/^\||\|$/g, '').split('|').map((it) => inline(it.trim()));
    const head = cells(lines[at]!);
    at += 2;
    return { kind: 'table', head, rows: take((it) => it.includes('|') && it.trim() !== '').map(cells) };
  }
}

const MARKS: [string, 'strong' | 'em' | 'del'][] = [['**', 'strong'], ['__', 'strong'], ['~~', 'del'], ['*', 'em'], ['_', 'em']];
const LINK = /^(!?)\[([^\]\n]{0,1000})\]\(\s*<?([^\s)>]{0,2000})>?[^)\n]{0,200}\)/, ADDRESS = /^https?:\/\/[^\s<>()]{1,2000}/;

export function inline(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  let plain = '';
  const flush = () => { if (plain) found.push({ kind: 'text', text: plain }); plain = ''; };
  const isWord = (it: string | undefined) => it !== undefined && /\w/.test(it);
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at, at + 4_000), char = text[at]!;
    if (char === '\\' && /[\\`*_{}[\]()#+\-.!|~>]/.test(text[at + 1] ?? '')) { plain += text[at + 1]; at += 2; continue; }
    if (char === '`') {
      const ticks = /^`+/.exec(rest)![0];
      const end = text.indexOf(ticks, at + ticks.length);
      if (end > 0) { flush(); found.push({ kind: 'code', text: text.slice(at + ticks.length, end).trim() }); at = end + ticks.length; continue; }
      plain += ticks; at += ticks.length; continue;
    }
    const link = char === '[' || char === '!' ? LINK.exec(rest) : null;
    if (link) {
      flush();
      found.push(link[1] ? { kind: 'image', text: `${link[2]}, ${link[3]}` } : { kind: 'link', href: link[3]!, inside: depth < MAX_DEPTH ? inline(link[2]!, depth + 1) : [{ kind: 'text', text: link[2]! }] });
      at += link[0].length; continue;
    }
    const address = char === 'h' && !isWord(text[at - 1]) ? ADDRESS.exec(rest)?.[0].replace(/[.,;:!?'"*]+$/, '') : undefined;
    if (address) { flush(); found.push({ kind: 'link', href: address, inside: [{ kind: 'text', text: address }] }); at += address.length; continue; }
    const mark = depth < MAX_DEPTH ? MARKS.find(([it]) => rest.startsWith(it) && !/\s/.test(rest[it.length] ?? ' ') && !(it[0] === '_' && isWord(text[at - 1]))) : undefined;
    const end = mark ? rest.indexOf(mark[0], mark[0].length + 1) : -1;
    if (mark && end > 0 && !/\s/.test(rest[end - 1]!)) { flush(); found.push({ kind: mark[1], inside: inline(rest.slice(mark[0].length, end), depth + 1) }); at += end + mark[0].length; continue; }
    plain += char;
    at++;
  }
  flush();
  return found;
}
