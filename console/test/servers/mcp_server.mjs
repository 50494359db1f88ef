// A small MCP server over HTTP, in either era, that reports progress, asks back, fails, crashes its connection, and means no
// good. It stands at the far end of the wire: everything before it is real.
import { createServer } from 'node:http';
import { everything, hostileBlocks } from '../fixtures/world.mjs';

const READS = { readOnlyHint: true };
const tool = (name, description, inputSchema = { type: 'object' }, annotations = READS) => ({ name, description, inputSchema, annotations });
const tools = [
  tool('everything', 'Takes every construct of JSON Schema.', everything), tool('progress', 'Reports progress until it is cancelled.'), tool('form', 'Asks for a name.'), tool('sample', 'Asks a model.'),
  tool('hostile', '<img src=x onerror="fetch(\'/pwned\')"> <script>fetch("/pwned")</script> \u202Eevil'), tool('fails', 'Says no.'), tool('hangs', 'Never answers.'), tool('breaks', 'Breaks the connection.'),
  tool('wipe', 'Deletes everything.', { type: 'object', required: ['what'], properties: { what: { type: 'string' } } }, { destructiveHint: true }),
  tool('huge', 'Ten megabytes.'), tool('strict', 'Takes a city.', { type: 'object', required: ['place'], properties: { place: { type: 'object', required: ['city'], properties: { city: { type: 'string', pattern: '^[A-Z]' } } } } }),
];
const prompts = [{ name: 'greet', description: 'Greets <b>somebody</b>.', arguments: [{ name: 'who', required: true }] }];
const resources = [{ uri: 'test://note', name: 'Note', mimeType: 'text/plain' }];
const FORM = { message: 'Who <b>are</b> you?', requestedSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } } };
const SAMPLE = { messages: [{ role: 'user', content: { type: 'text', text: 'Say something' } }], maxTokens: 50 };

/** Starts one; `era` is `legacy` (handshake) or `modern` (2026-07-28). */
export async function serveMcp(era) {
  const seen = { calls: [], cancelled: 0 };
  const waiting = new Map();
  let next = 1;
  const server = createServer(async (request, response) => {
    request.setEncoding('utf8');
    let body = '';
    for await (const part of request) body += part;
    if (request.method !== 'POST') return response.writeHead(405).end();
    const message = JSON.parse(body);
    if (message.method === undefined) { waiting.get(message.id)?.(message.result); return response.writeHead(202).end(); }
    if (message.method === 'notifications/cancelled') seen.cancelled++;
    if (message.id === undefined) return response.writeHead(202).end();
    const complete = era === 'modern' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
    const answer = (result) => { response.writeHead(200, { 'content-type': 'application/json', ...(message.method === 'initialize' ? { 'mcp-session-id': 's1' } : {}) }); response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { ...complete, ...result } })); };
    const refuse = (code, text) => { response.writeHead(200, { 'content-type': 'application/json' }); response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code, message: text } })); };
    const capabilities = { tools: { listChanged: true }, prompts: {}, resources: {}, completions: {}, logging: {} };
    switch (message.method) {
      case 'server/discover': return era === 'modern' ? answer({ supportedVersions: ['2026-07-28'], capabilities }) : refuse(-32601, 'no such method');
      case 'initialize': return answer({ protocolVersion: '2025-11-25', capabilities, serverInfo: { name: era, version: '1' } });
      case 'ping': return answer({});
      case 'logging/setLevel': return answer({});
      case 'tools/list': return answer({ tools });
      case 'prompts/list': return answer({ prompts });
      case 'prompts/get': return answer({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${message.params.arguments?.who} <script>fetch("/pwned")</script>` } }] });
      case 'resources/list': return answer({ resources });
      case 'resources/templates/list': return answer({ resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'Item' }] });
      case 'resources/read': return answer({ contents: [{ uri: message.params.uri, mimeType: 'text/plain', text: `text of ${message.params.uri}` }] });
      case 'completion/complete': return answer({ completion: { values: ['Ada', 'Bob'].filter((it) => it.startsWith(message.params.argument.value)) } });
      case 'subscriptions/listen': { response.writeHead(200, { 'content-type': 'text/event-stream' }); response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } })}\n\n`); return undefined; }
      case 'tools/call': return call(message, response, answer);
      default: return refuse(-32601, `no ${message.method}`);
    }
  });

  async function call({ id, params }, response, answer) {
    seen.calls.push({ name: params.name, arguments: params.arguments });
    const text = (it, more = {}) => ({ content: [{ type: 'text', text: it }], ...more });
    const stream = () => { response.writeHead(200, { 'content-type': 'text/event-stream' }); return (it) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...it })}\n\n`); };
    const ask = async (method, params_) => {
      const tell = stream(), own = `q${next++}`;
      const reply = new Promise((resolve) => waiting.set(own, resolve));
      tell({ id: own, method, params: params_ });
      const said = await reply;
      tell({ id, result: text(JSON.stringify(said)) });
      response.end();
    };
    switch (params.name) {
      case 'everything': return answer(text(JSON.stringify(params.arguments)));
      case 'hostile': return answer({ content: hostileBlocks });
      case 'huge': return answer(text('All work and no play. '.repeat(460_000)));
      case 'fails': return answer(text('no, thank you', { isError: true }));
      case 'strict': case 'wipe': return answer(text('done'));
      case 'hangs': response.on('close', () => seen.cancelled++); return undefined;
      case 'breaks': return response.destroy();
      case 'form': case 'sample': {
        const [method, own] = params.name === 'form' ? ['elicitation/create', FORM] : ['sampling/createMessage', SAMPLE];
        if (era === 'legacy') return ask(method, own);
        if (!params.inputResponses) return answer({ resultType: 'input_required', inputRequests: { q: { method, params: own } }, requestState: 'x' });
        return answer(text(JSON.stringify(params.inputResponses.q)));
      }
      case 'progress': {
        const tell = stream();
        let at = 0;
        const timer = setInterval(() => tell({ method: 'notifications/progress', params: { progressToken: params._meta?.progressToken, progress: ++at, total: 100, message: `step ${at}` } }), 100);
        response.on('close', () => { clearInterval(timer); seen.cancelled++; });
        return undefined;
      }
      default: return answer(text(`there is no ${params.name}`, { isError: true }));
    }
  }
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, seen, close: () => { server.closeAllConnections(); return new Promise((done) => server.close(done)); } };
}
