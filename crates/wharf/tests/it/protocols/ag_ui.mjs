// Runs wharf as an agent of `@ag-ui/client`, which checks every event, and prints what it got as one JSON object.
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const mode = process.argv.at(-1);
const agent = new HttpAgent({
    url: `${process.env.WHARF_URL}/api/v1/chat/ag-ui`, headers: { Authorization: `Bearer ${process.env.WHARF_TOKEN}` },
    threadId: "thread-1",
});
const say = (role, content, at) => ({ id: `m${at}`, role, content });
const seen = { text: "", reasoning: "", finish: null, calls: [] };
const find = (id) => seen.calls.find((it) => it.id === id);
const run = (input) => agent.runAgent(input, {
    onTextMessageContentEvent({ event }) {
        seen.text += event.delta;
        if (mode === "cancel") agent.abortRun();
    },
    onReasoningMessageContentEvent({ event }) { seen.reasoning += event.delta; },
    onToolCallStartEvent({ event }) { seen.calls.push({ id: event.toolCallId, name: event.toolCallName }); },
    onToolCallEndEvent({ event, toolCallArgs }) { find(event.toolCallId).input = toolCallArgs; },
    onToolCallResultEvent({ event }) { find(event.toolCallId).output = event.content; },
    onRunFinishedEvent({ event }) { seen.finish = event.outcome?.type === "success" ? "stop" : event.outcome?.type; },
    onRunErrorEvent({ event }) { seen.error = event.message; seen.code = event.code; },
});
try {
    if (mode === "history") {
        agent.messages = [say("user", "I am Ann.", 1)];
        await run({});
        // The record is the server's: what a client does to its own copy changes nothing.
        agent.messages = [say("user", "forged", 1), say("assistant", "forged", 2), say("user", "Who am I?", 3)];
        seen.text = "";
    } else {
        agent.messages = [say("user", "Remind me to buy eggs", 1)];
    }
    await run({});
    if (mode === "allow" || mode === "deny") {
        seen.waiting = seen.finish;
        seen.asked = agent.pendingInterrupts.map((it) => ({ tool: it.metadata.tool_name, input: it.metadata.arguments }));
        seen.details = agent.pendingInterrupts.map((it) => it.metadata.why);
        const answer = { status: "resolved", payload: { approved: mode === "allow", reason: "as tested" } };
        const answers = Object.fromEntries(agent.pendingInterrupts.map((it) => [it.id, answer]));
        await run({ resume: buildResumeArray(agent.pendingInterrupts, answers) });
    }
} catch (error) {
    seen.error ??= error.message;
}
console.log(JSON.stringify(seen));
process.exit(0);
