"""An MCP server on stdio with the tools `query` and `status`."""

import json
import sys

TEXT = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
TOOLS = [
    {"name": "query", "description": "Ask the library's database.", "inputSchema": TEXT},
    {"name": "status", "description": "Say whether it is up.", "inputSchema": {"type": "object", "properties": {}}},
]


def respond(message):
    match message["method"]:
        case "initialize":
            version, about = message["params"]["protocolVersion"], {"name": "db", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            said = f"{message['params']['name']} of the MCP server: {json.dumps(message['params'].get('arguments'))}"
            return {"result": {"content": [{"type": "text", "text": said}]}}
        case method:
            return {"error": {"code": -32601, "message": f"There is no method {method!r}."}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **respond(message)}) + "\n")
        sys.stdout.flush()
