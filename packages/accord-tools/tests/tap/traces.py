"""A trace of a short conversation, and what makes more of them."""

import json

from accord import trace


def frame(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def request(number, method, **params):
    return frame(id=number, method=method, params=params)


def update(session, what, /, **members):
    return frame(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **members}})


def chunk(text, session="s1"):
    return update(session, "agent_message_chunk", content={"type": "text", "text": text})


CONVERSATION = [
    (0.0, "in", {"process": {"event": "started", "pid": 7, "command": ["agent", "--acp"]}}),
    (0.1, "out", {"frame": request(1, "initialize", protocolVersion=1, clientInfo={"name": "zed", "version": "1"})}),
    (0.2, "in", {"frame": frame(id=1, result={"protocolVersion": 1, "agentInfo": {"name": "a", "version": "2"}})}),
    (0.3, "out", {"frame": request(2, "session/new", cwd="/project", mcpServers=[])}),
    (0.4, "in", {"frame": frame(id=2, result={"sessionId": "s1"})}),
    (1.0, "out", {"frame": request(3, "session/prompt", sessionId="s1", prompt=[{"type": "text", "text": "Fix it"}])}),
    (1.5, "in", {"frame": chunk("I will ")}),
    (1.6, "in", {"frame": chunk("look.")}),
    (1.7, "in", {"frame": update("s1", "tool_call", toolCallId="t1", title="Edit main.py", kind="edit")}),
    (1.8, "in", {"frame": request(1, "fs/read_text_file", sessionId="s1", path="/project/main.py")}),
    (1.9, "out", {"frame": frame(id=1, result={"content": "print()"})}),
    (
        2.0,
        "in",
        {
            "frame": request(
                2,
                "session/request_permission",
                sessionId="s1",
                toolCall={"toolCallId": "t1", "title": "Edit main.py"},
                options=[{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
            )
        },
    ),
    (7.0, "out", {"frame": frame(id=2, result={"outcome": {"outcome": "selected", "optionId": "yes"}})}),
    (7.1, "in", {"frame": update("s1", "tool_call_update", toolCallId="t1", status="completed")}),
    (7.2, "in", {"stderr": "warning: rate limit"}),
    (7.5, "in", {"frame": frame(id=3, result={"stopReason": "end_turn"})}),
    (8.0, "out", {"frame": request(4, "session/load", sessionId="s9", cwd="/", mcpServers=[])}),
    (8.1, "in", {"frame": frame(id=4, error={"code": -32002, "message": "no such session"})}),
    (9.0, "out", {"frame": request(5, "session/prompt", sessionId="s1", prompt=[{"type": "text", "text": "More"}])}),
    (9.5, "in", {"process": {"event": "exited", "signal": "SIGKILL"}}),
]


def events(conversation=CONVERSATION):
    return [trace.TraceEvent(time, direction, **what) for time, direction, what in conversation]


def write(path, conversation=CONVERSATION, **options):
    writer = trace.TraceFile(path, began=0.0, **{"role": "tap", **options})
    for event in events(conversation):
        writer(event)
    writer.close()
    return path
