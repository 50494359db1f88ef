"""An MCP server with thousands of tools, which it lists in another order each time it starts."""

import json
import random
import sys

NOUNS = ["shipment", "supplier", "contract", "policy", "claim", "course", "student", "vehicle", "sensor", "budget"]
VERBS = ["list", "get", "create", "update", "delete", "search", "export", "archive", "assign", "count"]
TOOLS = [
    {
        "name": f"{verb}_{noun}_{n}",
        "description": f"{verb.capitalize()} a {noun} of plant {n}.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "integer", "description": "Number"}}},
    }
    for n in range(50)
    for noun in NOUNS
    for verb in VERBS
]
TOOLS[0] = {
    "name": "brew_tea",
    "description": "Pours hot water over leaves and waits.",
    "inputSchema": {"type": "object", "properties": {"cups": {"type": "integer"}}, "required": ["cups"]},
}
random.shuffle(TOOLS)

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        about = {"serverInfo": {"name": "many", "version": "1"}, "capabilities": {"tools": {}}}
        answer["result"] = {"protocolVersion": params["protocolVersion"], **about}
    elif method == "tools/list":
        answer["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        text = params["name"] + " " + json.dumps(params.get("arguments", {}))
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
