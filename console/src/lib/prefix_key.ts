// A key that gives the next one another meaning, such as `g` before the letter of a page.

/** Longest pause between the two. */
const MAX_PAUSE_MS = 3_000;
type Pressed = Pick<KeyboardEvent, 'timeStamp'>;

export class PrefixKey {
  #pressedAt = -Infinity;

  press({ timeStamp }: Pressed): void { this.#pressedAt = timeStamp; }

  /** Whether it was pressed just before this key, which uses it up. */
  take({ timeStamp }: Pressed): boolean {
    const pause = timeStamp - this.#pressedAt;
    this.#pressedAt = -Infinity;
    return pause < MAX_PAUSE_MS;
  }
}
