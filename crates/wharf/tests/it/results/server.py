"""An MCP server that returns large results, and keeps in the file OUT what it is given."""

import json
import os
import sys

ANY = {"type": "object"}
TOOLS = [
    {"name": "text", "description": "Returns a text.", "inputSchema": ANY},
    {"name": "rows", "description": "Returns rows.", "inputSchema": ANY, "outputSchema": ANY},
    {"name": "secret", "description": "Returns its token.", "inputSchema": ANY},
    {
        "name": "keep",
        "description": "Keeps a text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
]
LINE = 'line with "quotes", \\ and grüße, wharf://results/r-1\n'


def call(name, arguments):
    size = arguments.get("bytes", 0)
    if name == "text":
        return {"content": [{"type": "text", "text": LINE * (size // len(LINE.encode()) + 1)}]}
    if name == "rows":
        rows = [{"id": n, "name": f"row {n}", "text": "x" * 90} for n in range(size // 128 + 1)]
        rows[0]["text"] = LINE * 40_000 if arguments.get("long") else LINE
        document = {"items": rows, "next": None}
        return {"content": [{"type": "text", "text": json.dumps(document)}], "structuredContent": document}
    if name == "secret":
        return {"content": [{"type": "text", "text": (os.environ.get("TOKEN", "") + " ") * 500}]}
    with open(os.environ["OUT"], "wb") as file:
        file.write(arguments["text"].encode())
    return {"content": [{"type": "text", "text": f"kept {len(arguments['text'])} characters"}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        about = {"serverInfo": {"name": "maker", "version": "1"}, "capabilities": {"tools": {}}}
        answer["result"] = {"protocolVersion": params["protocolVersion"], **about}
    elif method == "tools/list":
        answer["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        answer["result"] = call(params["name"], params.get("arguments", {}))
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer, ensure_ascii=False), flush=True)
