"""A server whose tools ask the user and the model during a call, in the way of either era."""

from typing import Annotated

import mcp_types as types
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("asking")


class Size(BaseModel):
    size: int


async def ask_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


@server.tool()
async def order(size: Annotated[Size, Resolve(ask_size)]) -> str:
    """Orders shoes. Leaves it to the library how the client is asked."""
    return f"ordered size {size.size}"


PROMPT = "Name a colour, sk-canary-7f3e9a."


def message():
    return types.SamplingMessage(role="user", content=types.TextContent(type="text", text=PROMPT))


@server.tool()
async def paint_by_request(ctx: Context, count: int = 1) -> str:
    """Asks the model by requests, which only the handshake era allows."""
    said = []
    for _ in range(count):
        try:
            answer = await ctx.session.create_message([message()], max_tokens=100_000, system_prompt="One word.")
            said.append(answer.content.text)
        except Exception as error:
            said.append(f"error: {error}")
    return "; ".join(said)


@server.tool()
async def paint_by_result(ctx: Context) -> str | types.InputRequiredResult:
    """Asks the model in its result, which only 2026-07-28 allows."""
    if ctx.input_responses:
        return ctx.input_responses["what"].content.text
    params = types.CreateMessageRequestParams(messages=[message()], max_tokens=100)
    question = types.CreateMessageRequest(method="sampling/createMessage", params=params)
    return types.InputRequiredResult(input_requests={"what": question}, request_state="")


server.run("stdio")
