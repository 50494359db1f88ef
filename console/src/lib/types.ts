// The JSON that the gateway sends. What REST sends is generated from /openapi.json; events and MCP are written here.
import type { components } from './openapi.d.ts';

type Schemas = components['schemas'];
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type SessionInfo = Schemas['Session'];
export type Role = SessionInfo['principal']['role'];
export type Source = Schemas['Source'];
export type Connection = Schemas['Connection'];
export type Breaker = Schemas['Breaker'];
export type Tool = Schemas['Tool'];
export type Call = Schemas['Call'];
export type RunningCall = Schemas['RunningCall'];
export type LogLine = Schemas['LogLine'];
export type ClientInfo = Schemas['Client'];
export type Stats = Schemas['Stats'];
export type Diagnostic = Schemas['FileDiagnostic'];
export type ProblemDocument = Schemas['Problem'];
export type FieldProblem = NonNullable<ProblemDocument['problems']>[number];
export type Edition = Schemas['Definition'];
export type NewSource = Schemas['SourceRequest'];
export type LockItem = Schemas['LockItem'];
export type Conversation = Schemas['Conversation'];

export interface GatewayEvent { at: string; source: string | null; kind: string; data: Record<string, any> }
