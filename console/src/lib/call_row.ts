// One line of the list of calls, made once from an event or from the journal.
import type { Call, GatewayEvent, RunningCall } from './types.ts';

export interface CallRow { id: string; at: string; source: string; tool: string; status: string; ms: number; via: string; principal: string; error: string; hint?: string | null }

const wireName = (toolId: string | undefined | null): string => (toolId ? toolId.slice(toolId.indexOf(':') + 1) : '');

export const toRow = ({ at, source, data }: GatewayEvent): CallRow => ({
  id: String(data.request_id), at, source: source ?? '', tool: wireName(data.tool_id) || String(data.tool ?? ''), status: String(data.status), ms: Number(data.duration_ms), via: data.via ?? '', principal: data.principal ?? '', error: data.error ?? '',
});
export const fromJournal = (it: Call): CallRow => ({
  id: it.request_id, at: it.execution_start, source: it.source, tool: it.wire_name ?? it.tool_name, status: it.status, ms: it.execution_duration * 1_000, via: it.via ?? '', principal: it.principal ?? '', error: it.error ?? '', hint: it.hint,
});
export const fromRunning = (it: RunningCall): CallRow => ({
  id: it.request_id, at: it.started_at, source: it.source, tool: wireName(it.tool_id), status: 'running', ms: 0, via: it.via ?? '', principal: it.principal ?? '',
  error: it.progress?.message ?? (it.progress?.total ? `${Math.round((100 * it.progress.progress) / it.progress.total)} %` : ''),
});
