// A gateway that is made up: it serves the built page with the real policy, keeps to the contract of the API, and can be
// told to send bursts, to go away, or to fail.
import { createServer } from 'node:http';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { clients, failures, limits, logs, stats } from './fixtures/numbers.mjs';
import { routes } from './fixtures/routes.mjs';
import { hostileBlocks, lock, POLICY, sources, tools } from './fixtures/world.mjs';

const BUILT = new URL('../../crates/wharf/console/', import.meta.url);
const KINDS = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const page = (items) => ({ items, next_cursor: null });

const MCP = {
  'prompts/list': () => ({ prompts: [{ name: 'todo__plan_my_day', title: 'Plan my day', description: 'Plans a day from the open todos.', arguments: [{ name: 'day', description: 'Which day', required: true }] }] }),
  'prompts/get': (params) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Plan ${params.arguments.day}` } }] }),
  'completion/complete': (params) => ({ completion: { values: ['today', 'tomorrow'].filter((it) => it.startsWith(params.argument.value)) } }),
  'resources/list': () => ({ resources: [{ uri: 'todo://list', name: 'All todos', mimeType: 'application/json' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'todo://item/{id}', name: 'One todo' }] }),
  'resources/read': (params) => ({ contents: [{ uri: params.uri, mimeType: 'application/json', text: '[{"id":"1","title":"Milk"}]' }] }),
};

/** Starts one. `rate` calls a second, `count` in all, are told as events; `empty` has nothing; `open` needs no token. */
export async function serve(options = {}) {
  const time = () => options.now ?? Date.now();
  const now = () => new Date(time()).toISOString();
  const { rate = 0, count = 0, empty = false, open = false, role = 'admin', overrides = {} } = options;
  const state = { requests: [], bodies: [], sessions: new Set(), tickets: new Set(['wt_once']), streams: new Set(), cacheModes: [], cancelled: 0, calls: [], sent: 0, away: false, lists: 'work', saysNobody: false, startedAt: now() };
  const breaker = (name, more = {}) => ({ service_name: name, state: 'CLOSED', failure_count: 0, failure_threshold: 5, last_failure_time: null, recovery_timeout: 'PT30S', last_state_change: now(), ...more });
  const session = (it) => (it.session_state === 'connected' && it.discovery === 'done' ? { initialization_time: it.transport === 'builtin' ? 0.002 : 0.42, started_at: new Date(time() - 8_100_000).toISOString(), sessions: it.name === 'files' ? 3 : 1, era: it.transport === 'stdio' ? 'legacy' : 'modern', protocol_version: it.transport === 'stdio' ? '2025-11-25' : '2026-07-28' } : { initialization_time: null, started_at: null, sessions: 0, era: null, protocol_version: null });
  const lists = {
    '/api/v1/sources': () => (empty ? [] : sources), '/api/v1/tools': () => (empty ? [] : tools),
    '/api/v1/breakers': () => (empty ? [] : [...sources.filter((it) => it.name !== 'search').map((it) => breaker(it.name)), breaker('search', { state: 'OPEN', failure_count: 5 })]),
    '/api/v1/connections': () => (empty ? [] : sources.map((it) => ({ transport_type: it.transport, server_name: it.name, process: it.transport !== 'stdio' ? null : it.connection_state === 'connected' ? { pid: 4711, returncode: null } : { pid: null, returncode: it.error?.exit_code ?? null }, connection_state: it.connection_state, session_state: it.session_state, health: it.health, last_health_check: it.health === 'unknown' ? null : now(), discovered_tools: [], ...session(it) }))),
    '/api/v1/running': () => [], '/api/v1/calls': () => (empty ? [] : state.calls.toReversed()), '/api/v1/clients': () => (empty ? [] : clients(time())), '/api/v1/logs': () => (empty ? [] : logs(time())), '/api/v1/tokens': () => (empty ? [] : [{ name: 'operator', role: 'admin', last_used: now(), sessions: 2 }, { name: 'ci', role: 'caller', last_used: null, sessions: 0 }]), '/api/v1/lock': () => (empty ? [] : lock), '/api/v1/prompts': () => [],
    ...overrides.lists,
  };
  const numbers = (source, window) => { const all = stats(time(), window); return empty ? { ...all, series: [], breakers: [] } : { ...all, series: all.series.filter((it) => !source || it.key === source) }; };
  const json = (response, status, body, headers = {}) => { response.writeHead(status, { 'cache-control': 'no-store', 'content-type': status < 400 ? 'application/json' : 'application/problem+json', ...headers }); response.end(body === undefined ? '' : JSON.stringify(body)); };
  const problem = (response, status, detail, more = {}, headers = {}) => json(response, status, { type: 'about:blank', title: detail, status, detail, hint: null, request_id: null, ...more }, headers);

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://gateway');
    const path = decodeURIComponent(url.pathname);
    state.requests.push(`${request.method} ${request.url}`);
    if (state.away) return request.socket.destroy();
    // A character may be split between two parts.
    request.setEncoding('utf8');
    let body = '';
    for await (const part of request) body += part;
    state.bodies.push(body);
    const proof = (request.headers.authorization ?? '').replace('Bearer ', '');
    if (path === '/' || path.startsWith('/assets/')) return file(response, path === '/' ? 'index.html' : path.slice(1));
    if (path === '/ready') return json(response, 200, { status: 'ready' });
    if (path === '/api/v1/session' && request.method === 'POST') {
      if (!state.tickets.delete(proof) && proof !== 'a-token') return problem(response, 401, 'unknown token');
      const session = `ws_${state.sessions.size}`;
      state.sessions.add(session);
      return json(response, 201, { session, expires_at: now(), principal: { name: 'operator', role } });
    }
    if (!open && !state.sessions.has(proof)) return problem(response, 401, 'missing bearer token');
    if (path === '/api/v1/session' && request.method === 'DELETE') { state.sessions.delete(proof); return json(response, 204); }
    if (path === '/api/v1/session' && state.saysNobody) return undefined;
    if (path === '/api/v1/session') return json(response, 200, { principal: { name: open ? 'anybody' : 'operator', role }, via: open ? 'open' : 'session', expires_at: null, version: '0.9.0', started_at: state.startedAt, features: { chat: true, processes_over_rest: true, database: 'sqlite' }, limits });
    // Lists can be told to hang or to fail; the session and the events go on.
    if (state.lists === 'hang' && path !== '/api/v1/events') return undefined;
    if (state.lists === 'fail' && path !== '/api/v1/events') return problem(response, 503, 'the database is away', { hint: 'wait until it is back' }, { 'retry-after': '30' });
    if (empty && routes[`${request.method} ${path}`] && request.method === 'GET') return json(response, 200, path === '/api/v1/agent' ? { file: null, text: '', applied_at: now(), diagnostics: [] } : page([]));
    const override = overrides[`${request.method} ${path}`] ?? overrides[path] ?? routes[`${request.method} ${path}`];
    if (override) return override({ request, response, body, url, json, problem, state, now });
    if (path === '/api/v1/events') return events(request, response);
    if (path === '/api/v1/stats') return json(response, 200, numbers(url.searchParams.get('source'), Number(url.searchParams.get('window') ?? 900)));
    if (path === '/api/v1/calls' && options.failures) return json(response, 200, page([...state.calls.toReversed(), ...failures(time())]));
    if (path === '/mcp') return mcp(request, response, JSON.parse(body));
    if (lists[path]) return json(response, 200, page(lists[path]()));
    const one = /^\/api\/v1\/sources\/([^/]+)$/.exec(path);
    if (one) { const found = !empty && sources.find((it) => it.id === one[1]); return found ? json(response, 200, { ...found, deprecated: [] }) : problem(response, 404, 'no such source'); }
    const called = /^\/api\/v1\/calls\/([^/]+)$/.exec(path);
    if (called) { const found = !empty && [...state.calls, ...failures(time())].find((it) => it.request_id === called[1]); return found ? json(response, 200, found) : problem(response, 404, 'no such call'); }
    problem(response, 404, `there is no ${path}`);
  });

  function file(response, name) {
    try {
      const raw = readFileSync(new URL(name, BUILT));
      response.writeHead(200, { 'content-type': KINDS[name.split('.').pop()] ?? 'application/octet-stream', 'content-security-policy': POLICY, 'cross-origin-opener-policy': 'same-origin', 'referrer-policy': 'no-referrer' });
      response.end(raw);
    } catch { response.writeHead(404).end(); }
  }

  function events(request, response) {
    state.cacheModes.push(request.headers['cache-control']);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const tell = (kind, data) => response.write(`event: ${kind}\ndata: ${JSON.stringify({ at: now(), source: null, kind, data })}\n\n`);
    tell('hello', { version: '0.9.0', started_at: state.startedAt, number: 1 });
    state.streams.add(tell);
    let fraction = 0, last = Date.now();
    const timer = rate && setInterval(() => {
      fraction += (rate * (Date.now() - last)) / 1_000;
      last = Date.now();
      const due = Math.min(Math.floor(fraction), count - state.sent);
      fraction -= Math.floor(fraction);
      if (due <= 0) return;
      const told = Array.from({ length: Math.min(due, 200) }, (_, at) => call(state.sent + at));
      state.sent += due;
      tell('batch', { events: told, skipped: due > 200 ? { call: due - 200 } : {} });
    }, 100);
    response.on('close', () => { clearInterval(timer); state.streams.delete(tell); });
  }
  const call = (at, more = {}) => ({ at: now(), source: sources[at % 4].name, kind: 'call', data: { request_id: `r${at}`, tool: tools[at % tools.length].name, tool_id: tools[at % tools.length].tool_id, status: at % 50 === 0 ? 'failure' : 'success', duration_ms: (at % 97) * 7 + 1, via: 'mcp', principal: 'operator', error: at % 50 === 0 ? 'the tool said no' : null, ...more } });

  async function mcp(request, response, message) {
    const { id, method, params } = message;
    const answer = (result) => json(response, 200, { jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } });
    if (empty && MCP[method]) return answer({ prompts: [], resources: [], resourceTemplates: [] });
    const custom = overrides.mcp?.[method] ?? MCP[method];
    if (custom) return answer(custom(params));
    if (method !== 'tools/call') return json(response, 200, { jsonrpc: '2.0', id, error: { code: -32601, message: `no ${method}` } });
    const name = params.name.split('__')[1];
    state.calls.push({ request_id: params._meta['io.wharf/request_id'], tool_name: name, source: params.name.split('__')[0], parameters: params.arguments ?? {}, execution_start: now(), execution_duration: 0.012, status: 'success', via: 'mcp', principal: 'operator', sent: 'yes', result: { content: [{ type: 'text', text: 'done' }] } });
    if (name === 'hostile') return answer({ content: hostileBlocks });
    if (name === 'huge') return answer({ content: [{ type: 'text', text: 'All work and no play. '.repeat(460_000) }] });
    if (name === 'many') return answer({ content: [], structuredContent: { rows: Array.from({ length: 100_000 }, (_, at) => ({ id: at, name: `row ${at}` })) } });
    if (name === 'refuse') return answer({ isError: true, content: [{ type: 'text', text: 'invalid' }], _meta: { 'io.wharf/problems': [{ path: '/place/city', message: 'there is no such city' }] } });
    if (name === 'find') return json(response, 200, { jsonrpc: '2.0', id, error: { code: -32000, message: 'the circuit breaker for `search` is open; next try in 12 s', data: { hint: 'wait, or reset the breaker', sent: 'no', type: 'CircuitBreakerOpen' } } });
    if (name === 'ask' && !params.inputResponses) return answer({ resultType: 'input_required', requestState: 's1', inputRequests: { who: { method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } } } }, what: { method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: 'Say something' } }], maxTokens: 100 } } } });
    if (name === 'ask') return answer({ content: [{ type: 'text', text: JSON.stringify({ state: params.requestState, ...params.inputResponses }) }] });
    if (name === 'slow') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let at = 0;
      const timer = setInterval(() => {
        at++;
        const told = at <= 10 ? { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: at, total: 10, message: `step ${at}` } } : { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'counted' }] } };
        response.write(`data: ${JSON.stringify(told)}\n\n`);
        if (at === 3) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'three already' } })}\n\n`);
        if (at > 10) { clearInterval(timer); response.end(); }
      }, 250);
      response.on('close', () => { clearInterval(timer); if (at <= 10) state.cancelled++; });
      return undefined;
    }
    return answer({ content: [{ type: 'text', text: JSON.stringify({ arguments: params.arguments }) }], structuredContent: name === 'list_todos' ? { todos: [{ id: '1', title: 'Milk', priority: 3 }, { id: '2', title: 'Bread', priority: 2 }] } : undefined });
  }

  await new Promise((ready) => server.listen(options.port ?? 0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, state, call, tell: (kind, data) => { for (const tell of state.streams) tell(kind, data); }, drop: () => server.closeAllConnections(), close: () => { server.closeAllConnections(); return new Promise((done) => server.close(done)); } };
}

// `node test/gateway.mjs` serves it for a look.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  readdirSync(BUILT);
  const gateway = await serve({ port: Number(process.argv[2] ?? 7474), open: true, rate: 20, count: 1e9 });
  console.log(gateway.url);
}
