"""A small MCP server for tests of the command line. It writes everything that it receives to the file LOG.

With an argument it serves over HTTP, and prints its port."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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


PROMPTS = [{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}]


def answer(line):
    message = json.loads(line)
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        capabilities = {"tools": {}, "prompts": {}}
        about = {"serverInfo": {"name": "t", "version": "1"}, "capabilities": capabilities}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "prompts/list":
        return {"prompts": PROMPTS}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": json.dumps(params["arguments"])}}]}
    if method != "tools/call":
        raise KeyError(method)
    if params["name"] == "never":
        threading.Event().wait()
    text = line.strip() if params["name"] == "echo" else '{"b": [1, 2], "a": 12345678901234567890123}'
    return {"content": [{"type": "text", "text": text}]}


def reply(line):
    """Returns the response to a request as one line, or nothing for a notification."""
    message = json.loads(line)
    if "id" not in message:
        return None
    try:
        reply = {"result": answer(line)}
    except KeyError:
        reply = {"error": {"code": -32601, "message": "no such method"}}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply})


class Http(BaseHTTPRequestHandler):
    def do_POST(self):
        line = self.rfile.read(int(self.headers["Content-Length"])).decode()
        log.write(line.strip() + "\n")
        body = reply(line)
        self.send_response(200 if body else 202)
        self.send_header("Mcp-Session-Id", "the-session")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body or "")))
        self.end_headers()
        self.wfile.write((body or "").encode())

    def do_GET(self):
        self.send_error(405)

    def do_DELETE(self):
        log.write("DELETE " + self.headers["Mcp-Session-Id"] + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def print_reply(line):
    if body := reply(line):
        print(body, flush=True)


log = open(os.environ["LOG"], "a", buffering=1)
if len(sys.argv) > 1:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    print(server.server_port, flush=True)
    server.serve_forever()
for line in sys.stdin:
    # Not in the thread: the threads end with the input, and the last line is often the one that matters.
    log.write(line.strip() + "\n")
    threading.Thread(target=print_reply, args=[line], daemon=True).start()
