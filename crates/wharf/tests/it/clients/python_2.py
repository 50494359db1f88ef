"""Reads steps, performs them with the official Python client, version 2, and prints the result of each."""

import asyncio
import contextlib
import json
import os
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


async def reach(stack, transport, target):
    headers = {"Authorization": f"Bearer {os.environ.get('WHARF_TOKEN', '')}"}
    if transport == "stdio":
        return StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    if transport == "sse":
        return sse_client(target[0], headers=headers)
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=30))
    return streamable_http_client(target[0], http_client=http)


async def think(_context, _params):
    content = types.TextContent(type="text", text="I think so")
    return types.CreateMessageResult(role="assistant", model="none", content=content)


async def name_roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///", name="harbour")])


async def take(client, method, params, progress):
    match method:
        case "tools/list":
            return await client.list_tools()
        case "tools/call":
            return await client.call_tool(params["name"], params.get("arguments"), progress_callback=progress)
        case "prompts/list":
            return await client.list_prompts()
        case "prompts/get":
            return await client.get_prompt(params["name"], params.get("arguments"))
        case "resources/list":
            return await client.list_resources()
        case "resources/templates/list":
            return await client.list_resource_templates()
        case "resources/read":
            return await client.read_resource(params["uri"])
    raise ValueError(method)


async def main():
    transport, era, *target = sys.argv[1:]
    mode = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}[era]
    async with contextlib.AsyncExitStack() as stack:
        server = await reach(stack, transport, target)
        callbacks = {"sampling_callback": think, "list_roots_callback": name_roots}
        client = await stack.enter_async_context(Client(server, mode=mode, **callbacks))
        for step in json.load(sys.stdin):
            heard = []

            async def progress(at, _total, _message):
                heard.append(at)

            try:
                result = await take(client, step["method"], step.get("params", {}), progress)
                while step["until"] not in repr(result):
                    await asyncio.sleep(0.2)
                    result = await take(client, step["method"], step.get("params", {}), progress)
                said = {"result": result.model_dump(by_alias=True, exclude_none=True, mode="json")}
            except MCPError as error:
                said = {"error": {"code": error.error.code, "message": error.error.message}}
            print(json.dumps({**said, "progress": heard}), flush=True)


asyncio.run(asyncio.wait_for(main(), 120))
