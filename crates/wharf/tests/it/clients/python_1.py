"""Reads steps, performs them with the official Python client, version 1, and prints the result of each."""

import asyncio
import contextlib
import json
import os
import sys

import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def reach(stack, transport, target):
    headers = {"Authorization": f"Bearer {os.environ.get('WHARF_TOKEN', '')}"}
    if transport == "stdio":
        server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
        streams = stdio_client(server)
    elif transport == "sse":
        streams = sse_client(target[0], headers=headers)
    else:
        http = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=30))
        streams = streamable_http_client(target[0], http_client=http)
    read, write, *_ = await stack.enter_async_context(streams)
    session = ClientSession(read, write, sampling_callback=think, list_roots_callback=name_roots)
    return await stack.enter_async_context(session)


async def think(_context, _params):
    content = types.TextContent(type="text", text="I think so")
    return types.CreateMessageResult(role="assistant", model="none", content=content)


async def name_roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///", name="harbour")])


async def take(session, method, params, progress):
    match method:
        case "tools/list":
            return await session.list_tools()
        case "tools/call":
            return await session.call_tool(params["name"], params.get("arguments"), progress_callback=progress)
        case "prompts/list":
            return await session.list_prompts()
        case "prompts/get":
            return await session.get_prompt(params["name"], params.get("arguments"))
        case "resources/list":
            return await session.list_resources()
        case "resources/templates/list":
            return await session.list_resource_templates()
        case "resources/read":
            return await session.read_resource(params["uri"])
    raise ValueError(method)


async def main():
    transport, _era, *target = sys.argv[1:]
    async with contextlib.AsyncExitStack() as stack:
        session = await reach(stack, transport, target)
        await session.initialize()
        for step in json.load(sys.stdin):
            heard = []

            async def progress(at, _total, _message):
                heard.append(at)

            try:
                result = await take(session, step["method"], step.get("params", {}), progress)
                while step["until"] not in repr(result):
                    await asyncio.sleep(0.2)
                    result = await take(session, step["method"], step.get("params", {}), progress)
                said = {"result": result.model_dump(by_alias=True, exclude_none=True, mode="json")}
            except McpError as error:
                said = {"error": {"code": error.error.code, "message": error.error.message}}
            print(json.dumps({**said, "progress": heard}), flush=True)


asyncio.run(asyncio.wait_for(main(), 120))
