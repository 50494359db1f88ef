"""A server of both eras. Its tools ask the client for input in the way of one era each, or of both."""

import sys
from typing import Annotated

import mcp_types as types
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("both")


class Name(BaseModel):
    name: str


@server.tool()
async def push(ctx: Context) -> str:
    """Sends a request, which only the handshake era allows."""
    answer = await ctx.elicit("Who?", Name)
    return answer.data.name


@server.tool()
async def rounds(ctx: Context) -> str | types.InputRequiredResult:
    """Asks in its result, which only 2026-07-28 allows."""
    if ctx.input_responses:
        return ctx.input_responses["who"].content["name"]
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = types.ElicitRequestFormParams(message="Who?", requested_schema=schema)
    question = types.ElicitRequest(method="elicitation/create", params=params)
    return types.InputRequiredResult(input_requests={"who": question}, request_state="")


async def ask_name() -> Elicit[Name]:
    return Elicit("Who?", Name)


@server.tool()
async def either(name: Annotated[Name, Resolve(ask_name)]) -> str:
    """Leaves it to the library how the client is asked."""
    return name.name


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
