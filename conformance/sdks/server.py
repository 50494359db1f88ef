"""The server for the official conformance suite on the Python SDK: the fixtures of the folder `fixtures`.

It serves both eras over streamable HTTP and prints its URL, or serves one client over stdio with `--stdio`.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import os
import re
import socket
import sys
import warnings
from pathlib import Path

import uvicorn
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
ANSWERS, PROMPTS, QUESTIONS, RESOURCES, TOOLS = (
    json.loads((FIXTURES / f"{name}.json").read_text())
    for name in ("answers", "prompts", "questions", "resources", "tools")
)
# The SDK has no tasks, so the tools that need them are left out.
TASK_TOOLS = {"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input"}
TASK_TOOLS.add("test_tool_with_task")
TOOLS = [{k: v for k, v in tool.items() if k != "execution"} for tool in TOOLS if tool["name"] not in TASK_TOOLS]

HANDSHAKE_ERA = "2025-11-25"
PAUSE = 0.05
STATE_KEY = os.urandom(32)
ASK = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
logging.disable(logging.WARNING)
bus = InMemorySubscriptionBus()


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def fill(value, arguments):
    """Replaces `{name}` by the argument `name` in every string."""
    if isinstance(value, str):
        for name, argument in arguments.items():
            value = value.replace("{" + name + "}", str(argument))
        return value
    if isinstance(value, list):
        return [fill(one, arguments) for one in value]
    return {key: fill(one, arguments) for key, one in value.items()} if isinstance(value, dict) else value


def summary(script, given):
    """Fills the client's answers into the result text of a script."""

    def find(match):
        value = given
        for key in match[1].split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, str) else json.dumps(value)

    return re.sub(r"\{([\w.]+)\}", find, script["answer"]) if "answer" in script else json.dumps(given)


def invalid(words):
    return MCPError(code=types.INVALID_PARAMS, message=words)


def offers(ctx, capability):
    capabilities = ctx.session.client_capabilities
    return getattr(capabilities, capability, None) is not None


def require(ctx, capability):
    if not offers(ctx, capability):
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=f"the client does not offer `{capability}`",
            data={"requiredCapabilities": {capability: {}}},
        )


def sign(name, number):
    return f"{number}.{hmac.new(STATE_KEY, f'{name} {number}'.encode(), hashlib.sha256).hexdigest()}"


def questions(ctx, script, number, arguments):
    """Returns the questions of a round, without those that the client cannot answer if the script allows that."""
    asked = {}
    for key, question in script["rounds"][number].items():
        capability = question["method"].split("/")[0]
        if script.get("only_offered") and not offers(ctx, capability):
            continue
        require(ctx, capability)
        question = json.loads(json.dumps(question))
        if "message" in arguments:
            question["params"]["message"] = arguments["message"]
        if "prompt" in arguments:
            question["params"]["messages"][0]["content"]["text"] = arguments["prompt"]
        asked[key] = question
    return asked


def fits(question, answer):
    if question["method"] == "roots/list":
        return isinstance(answer.get("roots"), list)
    if question["method"] == "sampling/createMessage":
        return "content" in answer
    schema, content = question["params"]["requestedSchema"], answer.get("content") or {}
    kinds = {"string": str, "boolean": bool}
    kind = lambda name: kinds.get(schema["properties"][name]["type"], object)  # noqa: E731
    filled = all(isinstance(content.get(name), kind(name)) for name in schema.get("required", []))
    return answer.get("action") in ("decline", "cancel") or (answer.get("action") == "accept" and filled)


async def ask(ctx, name, params):
    """Returns the client's answers, or the result that lists the missing ones."""
    script, arguments = QUESTIONS[name], params.get("arguments") or {}
    if ctx.protocol_version <= HANDSHAKE_ERA:
        given = {}
        for number in range(len(script["rounds"])):
            for key, question in questions(ctx, script, number, arguments).items():
                request, result = ASK[question["method"]]
                related = ServerMessageMetadata(related_request_id=ctx.request_id)
                answer = await ctx.session.send_request(
                    request.model_validate(question), result, metadata=related
                )
                given[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return given, None
    state, number = params.get("requestState"), 0
    if script.get("state") and state is not None:
        known = [one for one in range(len(script["rounds"])) if hmac.compare_digest(sign(name, one), state)]
        if not known:
            raise invalid("the state is not ours")
        number = known[0]
    given = params.get("inputResponses") or {}
    asked = questions(ctx, script, number, arguments)
    if all(fits(question, given.get(key) or {}) for key, question in asked.items()):
        if number + 1 == len(script["rounds"]):
            return given, None
        number += 1
        asked = questions(ctx, script, number, arguments)
    result = {"resultType": "input_required", "inputRequests": asked}
    if script.get("state"):
        result["requestState"] = sign(name, number)
    return None, result


async def call_tool(ctx, params):
    params = dict(ctx.params)
    name, arguments = params["name"], params.get("arguments") or {}
    if name not in {tool["name"] for tool in TOOLS}:
        raise invalid("the tool is unknown")
    if name in ANSWERS["tools"]:
        return fill(ANSWERS["tools"][name], arguments)
    match name:
        case "test_tool_with_logging" | "test_logging_tool":
            for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
                await asyncio.sleep(PAUSE)
            return text("Three lines were logged.")
        case "test_tool_with_progress":
            for done in (0, 50, 100):
                await ctx.session.report_progress(done, 100)
                await asyncio.sleep(PAUSE)
            return text("All was done.")
        case "test_reconnection":
            if ctx.close_sse_stream is not None:
                await ctx.close_sse_stream()
            await asyncio.sleep(4 * PAUSE)
            return text("Reconnection test completed successfully.")
        case "test_missing_capability":
            require(ctx, "sampling")
            return text("The client can sample.")
        case "test_trigger_tool_change":
            await bus.publish(ToolsListChanged())
            return text("It was announced.")
        case "test_trigger_prompt_change":
            await bus.publish(PromptsListChanged())
            return text("It was announced.")
        case "test_streaming_elicitation":
            await ctx.session.report_progress(0, 1)
    given, missing = await ask(ctx, name, params)
    return missing or text(summary(QUESTIONS[name], given))


async def get_prompt(ctx, params):
    params = dict(ctx.params)
    name = params["name"]
    if name in ANSWERS["prompts"]:
        return fill(ANSWERS["prompts"][name], params.get("arguments") or {})
    if name not in QUESTIONS or not name.endswith("_prompt"):
        raise invalid("the prompt is unknown")
    given, missing = await ask(ctx, name, params)
    content = {"type": "text", "text": json.dumps(given)}
    return missing or {"messages": [{"role": "user", "content": content}]}


async def read_resource(ctx, params):
    uri = str(params.uri)
    if uri in ANSWERS["resources"]:
        return {"contents": [{"uri": uri, **ANSWERS["resources"][uri]}]}
    if not (found := re.fullmatch("test://template/(.+)/data", uri)):
        raise MCPError(code=types.INVALID_PARAMS, message="the resource is unknown", data={"uri": uri})
    data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]}


async def complete(ctx, params):
    values = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def typed(kind, handler):
    """Turns the JSON that a handler returns into a result of the SDK, which adds what each era needs."""

    async def handle(ctx, params):
        result = handler if isinstance(handler, dict) else await handler(ctx, params)
        chosen = types.InputRequiredResult if "inputRequests" in result else kind
        return chosen.model_validate(result)

    return handle


class Events(EventStore):
    """Keeps the events of every stream, so that a client can continue one."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events) - 1)

    async def replay_events_after(self, last_event_id, send_callback):
        if not last_event_id.isdigit() or int(last_event_id) >= len(self.events):
            return None
        stream = self.events[int(last_event_id)][0]
        for number, (stream_id, message) in list(enumerate(self.events))[int(last_event_id) + 1 :]:
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


server = Server(
    "python-sdk-server",
    version="1.0.0",
    instructions="A server to be tested.",
    get_tool_input_schema=lambda name: next((it["inputSchema"] for it in TOOLS if it["name"] == name), None),
    on_list_tools=typed(types.ListToolsResult, {"tools": TOOLS}),
    on_call_tool=typed(types.CallToolResult, call_tool),
    on_list_prompts=typed(types.ListPromptsResult, {"prompts": PROMPTS}),
    on_get_prompt=typed(types.GetPromptResult, get_prompt),
    on_list_resources=typed(types.ListResourcesResult, {"resources": RESOURCES["resources"]}),
    on_list_resource_templates=typed(types.ListResourceTemplatesResult, {"resourceTemplates": RESOURCES["resourceTemplates"]}),
    on_read_resource=typed(types.ReadResourceResult, read_resource),
    on_subscribe_resource=typed(types.EmptyResult, {}),
    on_unsubscribe_resource=typed(types.EmptyResult, {}),
    on_subscriptions_listen=ListenHandler(bus),
    on_completion=typed(types.CompleteResult, complete),
    on_set_logging_level=typed(types.EmptyResult, {}),
)


async def serve_stdio():
    async with stdio_server() as (reads, writes):
        changes = NotificationOptions(prompts_changed=True, tools_changed=True)
        await server.run(reads, writes, server.create_initialization_options(changes))


def serve_http():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    app = server.streamable_http_app(event_store=Events(), retry_interval=100)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["--stdio"]:
        asyncio.run(serve_stdio())
    else:
        serve_http()
