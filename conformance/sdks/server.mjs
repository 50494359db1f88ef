// The server for the official conformance suite on version 2 of the TypeScript SDK: the fixtures of a folder.
//
//   server.mjs FIXTURES            serves both eras over streamable HTTP and prints its URL
//   server.mjs FIXTURES --stdio    serves one client over stdio

import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  fromJsonSchema,
  InMemoryServerEventBus,
  isLegacyRequest,
  McpServer,
  ProtocolError,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const [folder, mode] = process.argv.slice(2);
const read = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
const [answers, prompts, scripts, resources] = ["answers", "prompts", "questions", "resources"].map(read);
// The SDK has no tasks of 2026-07-28, so the tools that need them are left out.
const taskTools = ["greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"];
const tools = read("tools")
  .filter((tool) => !taskTools.includes(tool.name))
  .map(({ name, description, inputSchema }) => ({ name, description, inputSchema: fromJsonSchema(inputSchema) }));

const INVALID_PARAMS = -32602;
const MISSING_CAPABILITY = -32021;
const PAUSE_MS = 50;
const stateKey = randomBytes(32);
const bus = new InMemoryServerEventBus();

const pause = (times = 1) => new Promise((resolve) => setTimeout(resolve, times * PAUSE_MS));
const text = (words) => ({ content: [{ type: "text", text: words }] });
const invalid = (words, data) => new ProtocolError(INVALID_PARAMS, words, data);

/** Replaces `{name}` by the argument `name` in every string. */
function fill(value, given) {
  const written = Object.entries(given).reduce(
    (json, [name, it]) => json.replaceAll(`{${name}}`, JSON.stringify(String(it)).slice(1, -1)),
    JSON.stringify(value),
  );
  return JSON.parse(written);
}

/** Fills the client's answers into the result text of a script. */
function summary(script, given) {
  const find = (_, path) => {
    const value = path.split(".").reduce((it, key) => it?.[key], given);
    return typeof value === "string" ? value : JSON.stringify(value);
  };
  return script.answer?.replace(/\{([\w.]+)\}/g, find) ?? JSON.stringify(given);
}

const sign = (name, round) => `${round}.${createHmac("sha256", stateKey).update(`${name} ${round}`).digest("hex")}`;

/** Returns the questions of a round, without those that the client cannot answer if the script allows that. */
function questions(script, round, given, capabilities) {
  const asked = {};
  for (const [key, question] of Object.entries(script.rounds[round])) {
    const capability = question.method.split("/")[0];
    if (capabilities?.[capability] === undefined) {
      if (script.only_offered) continue;
      throw missingCapability(capability);
    }
    asked[key] = structuredClone(question);
    if (given.message !== undefined) asked[key].params.message = given.message;
    if (given.prompt !== undefined) asked[key].params.messages[0].content.text = given.prompt;
  }
  return asked;
}

function missingCapability(capability) {
  const data = { requiredCapabilities: { [capability]: {} } };
  return new ProtocolError(MISSING_CAPABILITY, `the client does not offer \`${capability}\``, data);
}

function fits({ method, params }, answer) {
  if (method === "roots/list") return Array.isArray(answer?.roots);
  if (method === "sampling/createMessage") return answer?.content !== undefined;
  const { required = [], properties } = params.requestedSchema;
  const filled = required.every((name) => typeof answer?.content?.[name] === properties[name].type);
  return ["decline", "cancel"].includes(answer?.action) || (answer?.action === "accept" && filled);
}

/** Returns the client's answers, or the result that lists the missing ones. */
async function ask(serving, name, given, ctx) {
  const script = scripts[name];
  const capabilities = serving.server.getClientCapabilities();
  if (serving.era === "legacy") {
    const found = {};
    for (let round = 0; round < script.rounds.length; round++) {
      for (const [key, question] of Object.entries(questions(script, round, given, capabilities))) {
        found[key] = await ctx.mcpReq.send(question);
      }
    }
    return { found };
  }
  const state = script.state ? ctx.mcpReq.requestState() : undefined;
  let round = state === undefined ? 0 : script.rounds.findIndex((_, it) => sign(name, it) === state);
  if (round < 0) throw invalid("the state is not ours");
  const found = ctx.mcpReq.inputResponses ?? {};
  let asked = questions(script, round, given, capabilities);
  if (Object.entries(asked).every(([key, question]) => fits(question, found[key]))) {
    round += 1;
    if (round === script.rounds.length) return { found };
    asked = questions(script, round, given, capabilities);
  }
  const requestState = script.state ? { requestState: sign(name, round) } : {};
  return { missing: { resultType: "input_required", inputRequests: asked, ...requestState } };
}

async function callTool(serving, request, ctx) {
  const { name, arguments: given = {} } = request.params;
  if (!tools.some((tool) => tool.name === name)) throw invalid("the tool is unknown", { name });
  if (answers.tools[name]) return fill(answers.tools[name], given);
  const token = ctx.mcpReq._meta?.progressToken;
  const progress = (done, total) =>
    token === undefined || ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken: token, progress: done, total } });
  switch (name) {
    case "test_tool_with_logging":
    case "test_logging_tool":
      for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await ctx.mcpReq.log("info", line);
        await pause();
      }
      return text("Three lines were logged.");
    case "test_tool_with_progress":
      for (const done of [0, 50, 100]) {
        await progress(done, 100);
        await pause();
      }
      return text("All was done.");
    case "test_reconnection":
      ctx.http?.closeSSE?.();
      await pause(4);
      return text("Reconnection test completed successfully.");
    case "test_missing_capability":
      if (serving.server.getClientCapabilities()?.sampling === undefined) throw missingCapability("sampling");
      return text("The client can sample.");
    case "test_trigger_tool_change":
      bus.publish({ kind: "tools_list_changed" });
      return text("It was announced.");
    case "test_trigger_prompt_change":
      bus.publish({ kind: "prompts_list_changed" });
      return text("It was announced.");
    case "test_streaming_elicitation":
      await progress(0, 1);
  }
  const { found, missing } = await ask(serving, name, given, ctx);
  return missing ?? text(summary(scripts[name], found));
}

async function getPrompt(serving, request, ctx) {
  const { name, arguments: given = {} } = request.params;
  if (answers.prompts[name]) return fill(answers.prompts[name], given);
  if (!scripts[name] || !name.endsWith("_prompt")) throw invalid("the prompt is unknown", { name });
  const { found, missing } = await ask(serving, name, given, ctx);
  return missing ?? { messages: [{ role: "user", content: { type: "text", text: JSON.stringify(found) } }] };
}

function readResource({ params: { uri } }) {
  if (answers.resources[uri]) return { contents: [{ uri, ...answers.resources[uri] }] };
  const id = uri.match(/^test:\/\/template\/(.+)\/data$/)?.[1];
  if (id === undefined) throw invalid("the resource is unknown", { uri });
  const data = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { contents: [{ uri, mimeType: "application/json", text: JSON.stringify(data) }] };
}

function complete({ params: { argument } }) {
  const values = ["paris", "park", "party"].filter((word) => word.startsWith(argument.value));
  return { completion: { values, total: values.length, hasMore: false } };
}

function build({ era }) {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    logging: {},
    completions: {},
  };
  const about = { name: "typescript-sdk-server", version: "1.0.0" };
  const built = new McpServer(about, { capabilities, instructions: "A server to be tested." });
  const { server } = built;
  const serving = { server, era };
  for (const { name, ...tool } of tools) {
    built.registerTool(name, tool, () => text(name));
  }
  // Replaces the SDK's own, which turns every error into a result.
  server.setRequestHandler("tools/call", (request, ctx) => callTool(serving, request, ctx));
  server.setRequestHandler("prompts/list", () => ({ prompts }));
  server.setRequestHandler("prompts/get", (request, ctx) => getPrompt(serving, request, ctx));
  server.setRequestHandler("resources/list", () => ({ resources: resources.resources }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: resources.resourceTemplates }));
  server.setRequestHandler("resources/read", readResource);
  server.setRequestHandler("resources/subscribe", () => ({}));
  server.setRequestHandler("resources/unsubscribe", () => ({}));
  server.setRequestHandler("completion/complete", complete);
  server.setRequestHandler("logging/setLevel", () => ({}));
  return built;
}

/** Keeps the events of every stream, so that a client can continue one. */
class Events {
  #events = [];

  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return String(this.#events.length - 1);
  }

  async replayEventsAfter(last, { send }) {
    const { stream } = this.#events[Number(last)];
    for (let id = Number(last) + 1; id < this.#events.length; id++) {
      const event = this.#events[id];
      if (event.stream === stream && event.message?.jsonrpc) await send(String(id), event.message);
    }
    return stream;
  }
}

const sessions = new Map();

async function serveSession(request, response, body) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known.handleRequest(request, response, body);
  if (body?.method !== "initialize") {
    const status = request.headers["mcp-session-id"] ? 404 : 400;
    const error = { code: -32000, message: "there is no such session" };
    return response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
  }
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 100,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await build({ era: "legacy" }).connect(transport);
  return transport.handleRequest(request, response, body);
}

async function parse(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  try {
    return { body, parsed: JSON.parse(body) };
  } catch {
    return { body };
  }
}

function serveHttp() {
  const modern = toNodeHandler(createMcpHandler(build, { legacy: "reject", bus }));
  const [hostIsLocal, originIsLocal] = [localhostHostValidation(), localhostOriginValidation()];
  const listener = createServer(async (request, response) => {
    if (!hostIsLocal(request, response) || !originIsLocal(request, response)) return;
    const { body, parsed } = request.method === "POST" ? await parse(request) : {};
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
    const web = new Request(`http://localhost${request.url}`, { method: request.method, headers, body });
    const legacy = await isLegacyRequest(web);
    await (legacy ? serveSession(request, response, parsed) : modern(request, response, parsed));
  });
  listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
}

if (mode === "--stdio") serveStdio(build, { bus });
else serveHttp();
