"""Lists and calls all five tools of a Todo server with the official Python client, and prints the results."""

import asyncio
import contextlib
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

CALLS = [
    ("create_todo", {"title": "Milk", "priority": 2, "tags": ["shop"], "due_date": "2026-01-31"}),
    ("list_todos", {"tags": ["shop"], "priority": 2}),
    ("update_todo", {"todo_id": 1, "status": "completed"}),
    ("search_todos", {"query": "MILK"}),
    ("delete_todo", {"todo_id": 1}),
]


def reach(transport, *target):
    if transport == "stdio":
        return stdio_client(StdioServerParameters(command=target[0], args=list(target[1:])))
    if transport == "sse":
        return sse_client(target[0])
    return streamablehttp_client(target[0])


async def main():
    async with contextlib.AsyncExitStack() as stack:
        read, write, *_ = await stack.enter_async_context(reach(*sys.argv[1:]))
        session = await stack.enter_async_context(ClientSession(read, write))
        await session.initialize()
        tools = await session.list_tools()
        print(*[tool.name for tool in tools.tools])
        for name, arguments in CALLS:
            result = await session.call_tool(name, arguments)
            assert not result.isError and result.structuredContent, result
            print(name, result.content[0].text)
        assert (await session.call_tool("delete_todo", {"todo_id": 1})).isError
        assert (await session.get_prompt("plan_my_day")).messages
        assert (await session.read_resource("todo://all")).contents


asyncio.run(main())
