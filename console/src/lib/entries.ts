// The entries of a kept conversation, as the messages that the chat shows.

export interface ToolPart { kind: 'tool'; id: string; name: string; source: string; args: unknown; status: string; result?: unknown; error?: string; seconds?: number; startedAt: number }
export interface ApprovalPart { kind: 'approval'; id: string; tool: string; args: unknown; digest: string; why: string; expiresAt: string | null; decision: 'allow' | 'deny' | null; failed: string }
export type Part = { kind: 'text' | 'thinking' | 'error' | 'note'; text: string; hint?: string | null } | ToolPart | ApprovalPart;
export interface Message { role: 'user' | 'assistant'; parts: Part[] }

export interface Entry { kind: string; run_id: string; call_id: string | null; body: Record<string, any> }

/** Contents are `{"text": "…"}` or `{"image": {…}}`; parts of an answer `{"text": {"text": "…"}}`. */
const textOf = (it: any): string => (typeof it?.text === 'string' ? it.text : typeof it?.text?.text === 'string' ? it.text.text : it?.image ? '[picture]' : '');
function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  try { return JSON.parse(text); } catch { return text; }
}

/** Kinds that are for the model only are left out. */
export function fromEntries(entries: Entry[]): Message[] {
  const messages: Message[] = [];
  const last = (role: Message['role']): Part[] => { if (messages.at(-1)?.role !== role) messages.push({ role, parts: [] }); return messages.at(-1)!.parts; };
  const callOf = (id: string | null) => messages.flatMap((it) => it.parts).findLast((it): it is ToolPart => it.kind === 'tool' && it.id === id);
  for (const { kind, call_id, body } of entries) {
    if (kind === 'user') last('user').push({ kind: 'text', text: (body.content ?? []).map(textOf).join('\n') });
    else if (kind === 'answer') for (const part of body.parts ?? []) last('assistant').push(...answerPart(part));
    else if (kind === 'result') {
      const call = callOf(body.call_id ?? call_id);
      if (call) Object.assign(call, { status: body.status ?? (body.is_error ? 'failed' : 'completed'), seconds: body.duration ?? undefined, result: { content: (body.content ?? []).map((it: any) => (it.image ? { type: 'image', data: it.image.base64, mimeType: it.image.media_type } : { type: 'text', text: textOf(it) })) } });
    } else if (kind === 'approval') last('assistant').push({ kind: 'note', text: `${body.is_allowed ? 'Allowed' : 'Denied'} by ${body.by}${body.reason ? `: ${body.reason}` : ''}` });
    else if (kind === 'ending' && body.error) last('assistant').push({ kind: 'error', text: String(body.error.message ?? body.status), hint: body.error.hint ?? null });
  }
  return messages;
}

function answerPart(part: any): Part[] {
  if (part.call) return [{ kind: 'tool', id: part.call.id, name: part.call.name, source: String(part.call.name).split('__')[0]!, args: parsed(part.call.arguments), status: 'unknown', startedAt: 0 }];
  if (part.reasoning) return part.reasoning.text ? [{ kind: 'thinking', text: part.reasoning.text }] : [];
  return textOf(part) ? [{ kind: 'text', text: textOf(part) }] : [];
}
