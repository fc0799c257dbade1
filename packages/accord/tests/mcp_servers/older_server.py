"""An MCP server of before 2026, by hand: it asks its client in the middle of a call, and tells of its own accord."""

import json
import os
import sys

TOOLS = ["ask", "ask for a password", "visit", "folders", "grow", "same", "wait", "die"]
FORM = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}, "required": ["colour"]}
ids = iter(range(1000, 2000))


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive():
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def ask(method, params=None):
    """Ask the client, and wait for its answer."""
    asked = next(ids)
    send(id=asked, method=method, params=params or {})
    while (message := receive()).get("id") != asked or "method" in message:
        pass
    return message.get("result", message.get("error"))


def call(name):
    match name:
        case "ask":
            return ask("elicitation/create", {"mode": "form", "message": "Which colour?", "requestedSchema": FORM})
        case "ask for a password":
            form = {"type": "object", "properties": {"password": {"type": "string"}}}
            return ask("elicitation/create", {"mode": "form", "message": "Sign in", "requestedSchema": form})
        case "visit":
            page = {"mode": "url", "message": "Sign in", "url": "https://example.com/", "elicitationId": "visit-1"}
            answer = ask("elicitation/create", page)
            send(method="notifications/elicitation/complete", params={"elicitationId": "visit-1"})
            return answer
        case "folders":
            return ask("roots/list")
        case "grow":
            TOOLS.append("grown")
            send(method="notifications/tools/list_changed")
            return {"grown": True}
        case "same":
            return "the same"
        case "die":
            os._exit(3)


def answer(method, params):
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "older", "version": "1"},
            }
        case "tools/list":
            start = int(params.get("cursor", 0))  # two at a time, so that there are pages
            more = {"nextCursor": str(start + 2)} if start + 2 < len(TOOLS) else {}
            return {
                "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS[start : start + 2]],
                **more,
            }
        case "tools/call":
            return {"content": [{"type": "text", "text": json.dumps(call(params["name"]))}]}


while message := receive():
    if "id" not in message or "method" not in message:
        continue
    params = message.get("params") or {}
    if params.get("name") == "wait":
        continue  # there will be no answer
    result = answer(message["method"], params)
    if result is None:
        send(id=message["id"], error={"code": -32601, "message": "Method not found"})
    else:
        send(id=message["id"], result=result)
