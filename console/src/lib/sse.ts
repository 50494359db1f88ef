// Reads server-sent events from a response that was fetched, which `EventSource` cannot do with a token.

export interface SseMessage { event: string; data: string; id: string | null }

/** A message longer than this is no message. */
const MAX_MESSAGE_CHARS = 64_000_000;

export async function* sse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseMessage> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let parts: string[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // Joined only when a message ends: long messages come in many pieces.
      parts.push(value);
      length += value.length;
      if (length > MAX_MESSAGE_CHARS) throw new Error('a message of the stream is too long');
      if (!/\r?\n\r?\n|^\r?\n/.test(value) && !endsMessage(parts)) continue;
      const messages = parts.join('').split(/\r?\n\r?\n/);
      const rest = messages.pop() ?? '';
      parts = [rest];
      length = rest.length;
      for (const message of messages) {
        const parsed = parse(message);
        if (parsed) yield parsed;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function endsMessage(parts: string[]): boolean {
  return /\r?\n\r?\n$/.test(parts.slice(-2).join('').slice(-8));
}

function parse(text: string): SseMessage | null {
  let event = 'message', id: string | null = null;
  const data: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    const value = line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    const field = line.slice(0, colon);
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id') id = value;
  }
  return data.length ? { event, data: data.join('\n'), id } : null;
}
