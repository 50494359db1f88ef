"""Drives the OpenAI Agents SDK for the measurement: `serve` takes orders from stdin, `once` sends one message."""

import asyncio
import json
import sys
import time
import uuid

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI


async def ask(agent, message, session=None):
    """Sends a message and reads the stream. Returns the seconds to the first text and to the end."""
    begun = time.perf_counter()
    first = None
    run = Runner.run_streamed(agent, message, session=session)
    async for event in run.stream_events():
        if first is None and getattr(getattr(event, "data", None), "type", "") == "response.output_text.delta":
            first = time.perf_counter() - begun
    return [first, time.perf_counter() - begun]


async def main(mode, url, server):
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="k")
    model = OpenAIChatCompletionsModel(model="m", openai_client=client)
    parameters = {"command": server, "args": ["echo", "stdio"]}
    async with MCPServerStdio(params=parameters, cache_tools_list=True) as tools:
        agent = Agent(name="other", model=model, mcp_servers=[tools])
        if mode == "once":
            await ask(agent, "answer")
            return
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            times = []
            for _ in range(order["count"]):
                session = SQLiteSession(str(uuid.uuid4()), "conversations.db") if order["save"] else None
                times.append(await ask(agent, order["message"], session))
                if session:
                    session.close()
            print(json.dumps(times), flush=True)


asyncio.run(main(*sys.argv[1:]))
