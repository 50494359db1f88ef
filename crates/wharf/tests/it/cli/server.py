"""A small MCP server for tests of the command line. It writes every line that it receives to the file LOG."""

import json
import os
import sys

TOOLS = [
    {
        "name": "echo",
        "description": "Says its arguments.\n\nAs they came, to the digit.",
        "inputSchema": {
            "type": "object",
            "$defs": {"Level": {"enum": ["low", "high"]}},
            "properties": {
                "level": {"$ref": "#/$defs/Level", "description": "How loud"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "size": {"type": "number"},
                "ids": {"type": "array", "items": {"type": "integer"}},
                "anything": {},
            },
            "required": ["level"],
        },
    },
    {"name": "never", "description": "Does not answer.", "inputSchema": {"type": "object"}},
    {"name": "json", "description": "Answers with JSON.", "inputSchema": {"type": "object", "properties": {}}},
]


def answer(line):
    message = json.loads(line)
    method = message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    name = message["params"]["name"]
    if name == "never":
        return None
    text = line.strip() if name == "echo" else '{"b": [1, 2], "a": 12345678901234567890123}'
    return {"content": [{"type": "text", "text": text}]}


log = open(os.environ["LOG"], "a", buffering=1)
for line in sys.stdin:
    log.write(line)
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] not in ("initialize", "tools/list", "tools/call"):
        reply = {"error": {"code": -32601, "message": "no such method"}}
    else:
        result = answer(line)
        if result is None:
            continue
        reply = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
