// Text of strangers. Characters that are not seen, that move the cursor, or that turn what follows around, are shown by
// their code; ANSI colour codes are dropped, because they are meant for a terminal.

const ANSI = /\u001b\[[0-9;?]*[A-Za-z]/g;
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** All that is not seen: controls, format characters, private use, fillers, variation selectors, odd spaces. */
const INVISIBLE = /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0000}-\u{e0fff}]|(?! )\p{Zs}/gu;

const code = (it: string): string => `⟨${it.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** A whole text of a stranger for review: nothing is cut, dropped or normalized, and what is not seen is shown. */
export const visible = (text: string): string => text.replace(INVISIBLE, code);

export const foreign = (text: string, most = 20_000): string => {
  const shown = text.length > most ? `${text.slice(0, most)}…` : text;
  return shown.replace(/\r\n/g, '\n').replace(ANSI, '').replace(UNSEEN, code);
};

/** One line of a stranger's text. */
export const foreignLine = (text: string, most = 300): string => foreign(text, most).replace(/\s+/g, ' ');

/** The first sentence of a description, for lists. */
export const gist = (text: string | null | undefined): string => {
  const line = foreignLine(text ?? '', 400);
  const end = line.search(/[.:](\s|$)/);
  return end > 20 ? line.slice(0, end + 1) : line;
};

const SECRET = /pass(word|phrase|wd)?|secret|token|api_?key|apikey|credential|private_?key|authorization/i;
/** Checks whether a field's name looks like that of a secret. */
export const isSecretName = (name: string): boolean => SECRET.test(name) && !/(max|min|num|count|limit)_?tokens|tokens?_(count|limit)/i.test(name);
