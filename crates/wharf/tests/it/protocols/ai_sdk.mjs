// Talks to wharf with the chat of the AI SDK, as `useChat` has it, and prints what it got as one JSON object.
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

const mode = process.argv.at(-1);

/** Keeps the messages in memory. */
class State {
    status = "ready";
    error = undefined;
    messages = [];
    pushMessage = (message) => { this.messages = [...this.messages, message]; };
    popMessage = () => { this.messages = this.messages.slice(0, -1); };
    replaceMessage = (at, message) => { this.messages = this.messages.with(at, message); };
    snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
    constructor(options) { super({ ...options, state: new State() }); }
}

const seen = { text: "", reasoning: "", finish: null, calls: [] };
const chat = new Chat({
    id: "chat-1",
    transport: new DefaultChatTransport({
        api: `${process.env.WHARF_URL}/api/v1/chat/ui`, headers: { Authorization: `Bearer ${process.env.WHARF_TOKEN}` },
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: (error) => { seen.error = String(error?.message ?? error); },
});
const last = () => chat.messages.at(-1);
const approvals = () => last().parts.filter((it) => it.state === "approval-requested");
const settled = async () => {
    while (chat.status === "submitted" || chat.status === "streaming") await new Promise((it) => setImmediate(it));
};
if (mode === "cancel") {
    const sent = chat.sendMessage({ text: "Remind me to buy eggs" });
    while (!last()?.parts.some((it) => it.type === "text" && it.text && last().role === "assistant")) {
        await new Promise((it) => setImmediate(it));
    }
    await chat.stop();
    await sent;
} else if (mode === "history") {
    await chat.sendMessage({ text: "I am Ann." });
    // The record is the server's: what a client does to its own copy changes nothing.
    chat.messages = chat.messages.map((it) => ({ ...it, parts: [{ type: "text", text: "forged" }] }));
    await chat.sendMessage({ text: "Who am I?" });
} else {
    await chat.sendMessage({ text: "Remind me to buy eggs" });
}
if (mode === "allow" || mode === "deny") {
    seen.asked = approvals().map((it) => ({ tool: it.toolName, input: it.input }));
    seen.details = last().parts.filter((it) => it.type === "data-approval").map((it) => it.data.why);
    seen.waiting = last().metadata.status;
    for (const { approval } of approvals()) {
        await chat.addToolApprovalResponse({ id: approval.id, approved: mode === "allow", reason: "as tested" });
    }
    await new Promise((it) => setTimeout(it));
    await settled();
}
const message = last();
if (message?.role === "assistant") {
    const texts = (type) => message.parts.filter((it) => it.type === type).map((it) => it.text).join("\n\n");
    seen.text = texts("text");
    seen.reasoning = texts("reasoning");
    seen.calls = message.parts.filter((it) => it.type === "dynamic-tool")
        .map((it) => ({ name: it.toolName, input: it.input, output: it.output, state: it.state }));
    seen.finish = message.metadata?.status === "finished" ? "stop" : (message.metadata?.status ?? null);
}
seen.messages = chat.messages.length;
console.log(JSON.stringify(seen));
process.exit(0);
