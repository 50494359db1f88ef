// Reads steps, performs them with the official TypeScript client, version 2, and prints the result of each.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [transport, era, ...target] = process.argv.slice(2);
setTimeout(() => process.exit(124), 120_000).unref();
const headers = { Authorization: `Bearer ${process.env.WHARF_TOKEN}` };

const reach = {
    http: () => new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } }),
    sse: () => new SSEClientTransport(new URL(target[0]), { requestInit: { headers } }),
    stdio: () => new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }),
};

const take = {
    "tools/list": (client) => client.listTools(),
    "tools/call": (client, params, onprogress) => client.callTool(params, { onprogress }),
    "prompts/list": (client) => client.listPrompts(),
    "prompts/get": (client, params) => client.getPrompt(params),
    "resources/list": (client) => client.listResources(),
    "resources/templates/list": (client) => client.listResourceTemplates(),
    "resources/read": (client, params) => client.readResource(params),
};

const mode = { legacy: "legacy", modern: { pin: "2026-07-28" }, auto: "auto" }[era];
const steps = JSON.parse(readFileSync(0, "utf8"));
// Declares roots only if a step needs them: a server may request roots at any time, and this client then counts that as
// progress of the step.
const roots = steps.some(({ params }) => params.name?.endsWith("get-roots-list")) ? { roots: {} } : {};
const options = { capabilities: { sampling: {}, ...roots }, versionNegotiation: { mode } };
const client = new Client({ name: "typescript-2", version: "1" }, options);
const thought = { role: "assistant", model: "none", content: { type: "text", text: "I think so" } };
client.setRequestHandler("sampling/createMessage", () => thought);
if (roots.roots) {
    client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///", name: "harbour" }] }));
}
await client.connect(reach[transport]());
for (const { method, params, until } of steps) {
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
