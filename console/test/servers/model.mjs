// A model provider that speaks chat completions: it first wants a tool called, then says what it did.
import { createServer } from 'node:http';

export async function serveModel() {
  const asked = [];
  const server = createServer(async (request, response) => {
    request.setEncoding('utf8');
    let body = '';
    for await (const part of request) body += part;
    const question = JSON.parse(body || '{}');
    asked.push(question);
    const said = question.messages?.filter((it) => it.role === 'user').at(-1)?.content;
    const text = typeof said === 'string' ? said : JSON.stringify(said);
    const answered = question.messages?.at(-1)?.role === 'tool';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const tell = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    const name = question.tools?.map((it) => it.function.name).find((it) => it.endsWith(text.includes('wipe') ? 'wipe' : 'create_todo'));
    if (!answered && name) {
      tell({ role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify(text.includes('wipe') ? { what: 'disk' } : { title: 'buy eggs' }) } }] });
      tell({}, 'tool_calls');
    } else {
      for (const word of ['I did ', '**it**. ', '<img src=x onerror=fetch("/pwned")>']) tell({ role: 'assistant', content: word });
      tell({}, 'stop');
    }
    response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })}\n\n`);
    response.end('data: [DONE]\n\n');
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, asked, close: () => { server.closeAllConnections(); return new Promise((done) => server.close(done)); } };
}
