"""A small MCP server over standard input and output, without any library."""

import json
import os
import sys
import threading

tools = ["pid", "variables", "fail", "picture", "hang", "grow", "cancelled", "hanging"]
cancelled = []
hanging = []


def tell(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def described(name):
    tool = {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}}
    if name in ("pid", "variables"):
        tool["annotations"] = {"readOnlyHint": True}
    return tool


def called(name):
    if name == "pid":
        # Whoever is started by it is ended with it.
        if "CHILD" in os.environ:
            child = os.fork()
            if child == 0:
                signal_free()
            return f"{os.getpid()} {child}"
        return str(os.getpid())
    if name == "variables":
        return " ".join(sorted(os.environ))
    if name == "grow":
        tools.append("grown")
        tell({"method": "notifications/tools/list_changed"})
        return "it grew"
    if name == "cancelled":
        return str(len(cancelled))
    if name == "hanging":
        return str(len(hanging))
    return "unknown"


def signal_free():
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdin.close()
    threading.Event().wait()


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "notifications/cancelled":
        cancelled.append(params["requestId"])
    if "id" not in message:
        continue
    name = params.get("name")
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        server = {"name": "small", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": server}
    elif method == "tools/list":
        result = {"tools": [described(tool) for tool in tools]}
    elif name == "hang":
        hanging.append(message["id"])
        continue
    else:
        content = [{"type": "text", "text": called(name)}]
        result = {"content": content, "isError": name == "fail"}
    tell({"id": message["id"], "result": result})
