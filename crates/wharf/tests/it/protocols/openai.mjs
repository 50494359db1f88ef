// Asks wharf with OpenAI's official client for Node.js, and prints what it got as one JSON object.
import OpenAI from "openai";

const mode = process.argv.at(-1);
const client = new OpenAI({
    baseURL: `${process.env.WHARF_URL}/v1`, apiKey: process.env.WHARF_TOKEN, maxRetries: 1, timeout: 60_000,
});
let messages = [{ role: "user", content: "Remind me to buy eggs" }];
let more = {};
if (mode === "history") {
    messages = [
        { role: "developer", content: "Speak English." },
        { role: "user", content: "I am Ann." },
        { role: "assistant", content: "Hello Ann." },
        { role: "user", content: "Who am I?" },
    ];
    more = { temperature: 0.5, seed: 7, stop: "END", max_completion_tokens: 50 };
}
const seen = { text: "", reasoning: "", finish: null, usage: null };
try {
    const models = [];
    for await (const model of client.models.list()) models.push(model.id);
    if (models.join() !== "wharf") throw new Error(`models: ${models}`);
    const stream = await client.chat.completions.create({
        model: "wharf", messages, stream: true, stream_options: { include_usage: true }, ...more,
    });
    for await (const chunk of stream) {
        for (const choice of chunk.choices) {
            seen.text += choice.delta.content ?? "";
            seen.reasoning += choice.delta.reasoning_content ?? "";
            seen.finish = choice.finish_reason ?? seen.finish;
        }
        if (chunk.usage) {
            const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = chunk.usage;
            seen.usage = { prompt, completion, total };
        }
        if (mode === "cancel" && seen.text) {
            stream.controller.abort();
            break;
        }
    }
} catch (error) {
    Object.assign(seen, { error: error.message, status: error.status, code: error.code });
}
console.log(JSON.stringify(seen));
