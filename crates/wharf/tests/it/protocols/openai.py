# Asks wharf with OpenAI's official Python client, and prints what it got as one JSON object.
import json, os, sys
import openai

mode = sys.argv[1]
client = openai.OpenAI(
    base_url=os.environ["WHARF_URL"] + "/v1", api_key=os.environ["WHARF_TOKEN"], max_retries=1, timeout=60
)
messages = [{"role": "user", "content": "Remind me to buy eggs"}]
more = {}
if mode == "history":
    messages = [
        {"role": "system", "content": "Speak English."},
        {"role": "user", "content": "I am Ann."},
        {"role": "assistant", "content": "Hello Ann."},
        {"role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
    ]
    more = {"temperature": 0.5, "seed": 7, "stop": ["END"], "max_tokens": 50, "user": "ann"}
seen = {"text": "", "reasoning": "", "finish": None, "usage": None}
try:
    assert [it.id for it in client.models.list()] == ["wharf"]
    assert client.models.retrieve("wharf").owned_by == "wharf"
    if mode in ("whole", "retry"):
        if mode == "retry":
            client = client.with_options(timeout=2)
        answer = client.chat.completions.create(model="wharf", messages=messages)
        choice = answer.choices[0]
        seen["text"], seen["finish"] = choice.message.content, choice.finish_reason
        seen["id"] = answer.id
    else:
        stream = client.chat.completions.create(
            model="wharf", messages=messages, stream=True, stream_options={"include_usage": True}, **more
        )
        for chunk in stream:
            assert chunk.object == "chat.completion.chunk" and chunk.model == "wharf", chunk
            for choice in chunk.choices:
                seen["text"] += choice.delta.content or ""
                seen["reasoning"] += getattr(choice.delta, "reasoning_content", None) or ""
                seen["finish"] = choice.finish_reason or seen["finish"]
            if chunk.usage:
                usage = chunk.usage
                seen["usage"] = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "total": usage.total_tokens}
            if mode == "cancel" and seen["text"]:
                stream.close()
                break
except openai.APIStatusError as error:
    seen |= {"error": error.message, "status": error.status_code, "code": error.code, "type": error.type, "param": error.param}
except openai.APIError as error:
    seen |= {"error": error.message, "code": error.code}
print(json.dumps(seen))
