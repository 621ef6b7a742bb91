"""A server over stdio that notes when it answered a call, in the file its argument names."""

import json
import sys
import time

SCHEMA = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}


def result(method, params):
    if method == "initialize":
        info = {"name": "stamps", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["message"]}]}
    return None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        found = result(message["method"], message.get("params", {}))
        answer = {"result": found} if found is not None else {"error": {"code": -32601, "message": "no such method"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()
        if message["method"] == "tools/call":
            with open(sys.argv[1], "w", encoding="utf-8") as stamp:
                stamp.write(str(time.monotonic_ns()))


main()
