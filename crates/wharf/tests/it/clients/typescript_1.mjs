// Reads steps, performs them with the official TypeScript client, version 1, and prints the result of each.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
import { CreateMessageRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [transport, , ...target] = process.argv.slice(2);
setTimeout(() => process.exit(124), 120_000).unref();
const headers = { Authorization: `Bearer ${process.env.WHARF_TOKEN}` };

// The client's own class accepts no headers, but the Node class that it uses does.
class WithToken extends WebSocket {
    constructor(url, protocols) {
        super(url, { protocols, headers });
    }
}
globalThis.WebSocket = WithToken;

const reach = {
    http: () => new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } }),
    sse: () => new SSEClientTransport(new URL(target[0]), { requestInit: { headers } }),
    ws: () => new WebSocketClientTransport(new URL(target[0])),
    stdio: () => new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }),
};

const take = {
    "tools/list": (client) => client.listTools(),
    "tools/call": (client, params, onprogress) => client.callTool(params, undefined, { onprogress }),
    "prompts/list": (client) => client.listPrompts(),
    "prompts/get": (client, params) => client.getPrompt(params),
    "resources/list": (client) => client.listResources(),
    "resources/templates/list": (client) => client.listResourceTemplates(),
    "resources/read": (client, params) => client.readResource(params),
};

const client = new Client({ name: "typescript-1", version: "1" }, { capabilities: { sampling: {}, roots: {} } });
const thought = { role: "assistant", model: "none", content: { type: "text", text: "I think so" } };
client.setRequestHandler(CreateMessageRequestSchema, () => thought);
const roots = [{ uri: "file:///", name: "harbour" }];
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots }));
await client.connect(reach[transport]());
for (const { method, params, until } of JSON.parse(readFileSync(0, "utf8"))) {
    const progress = [];
    const again = () =>
        take[method](client, params, (at) => progress.push(at.progress)).then(
            (result) => ({ result }),
            ({ code, message }) => ({ error: { code, message } }),
        );
    let said = await again();
    while (!JSON.stringify(said).includes(until)) {
        await sleep(200);
        said = await again();
    }
    console.log(JSON.stringify({ ...said, progress }));
}
await client.close();
