"""Traces for the tests of the inspector, written line by line."""

import json
from pathlib import Path


class Recording:
    """A trace that a client has recorded; each message is a tenth of a second after the one before."""

    def __init__(self, path: Path, **header):
        self.path = path
        self.time = 0.0
        self.count = 0
        path.write_text(json.dumps({"accord-trace": 1, "role": "client", **header}) + "\n")

    def raw(self, line: bytes):
        with self.path.open("ab") as file:
            file.write(line)

    def line(self, direction, after=0.1, **members):
        self.time = round(self.time + after, 6)
        self.count += 1
        self.raw(json.dumps({"t": self.time, "dir": direction, **members}).encode() + b"\n")
        return self.count - 1

    def request(self, direction, number, method, params, **more):
        return self.line(direction, frame={"jsonrpc": "2.0", "id": number, "method": method, "params": params}, **more)

    def answer(self, direction, number, result, **more):
        return self.line(direction, frame={"jsonrpc": "2.0", "id": number, "result": result}, **more)

    def error(self, direction, number, code, message):
        return self.line(direction, frame={"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})

    def update(self, session, kind, /, **members):
        params = {"sessionId": session, "update": {"sessionUpdate": kind, **members}}
        return self.line("in", frame={"jsonrpc": "2.0", "method": "session/update", "params": params})

    def says(self, session, text, kind="agent_message_chunk"):
        return self.update(session, kind, content={"type": "text", "text": text})

    # What many tests need

    def opening(self, session="s1", version=1):
        self.request(
            "out", 0, "initialize", {"protocolVersion": version, "clientInfo": {"name": "editor", "version": "2"}}
        )
        self.answer("in", 0, {"protocolVersion": version, "agentCapabilities": {"loadSession": True}})
        self.request("out", 1, "session/new", {"cwd": "/home/ada", "mcpServers": []})
        self.answer(
            "in",
            1,
            {
                "sessionId": session,
                "modes": {
                    "currentModeId": "ask",
                    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
                },
            },
        )

    def prompt(self, number, text, session="s1"):
        return self.request(
            "out", number, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        )

    def stop(self, number, reason="end_turn"):
        return self.answer("in", number, {"stopReason": reason})

    def edit(self, session="s1", call="c1", title="Edit notes.md"):
        """A tool call that asks for permission, waits two seconds for it, and changes a file."""
        self.update(
            session,
            "tool_call",
            toolCallId=call,
            title=title,
            kind="edit",
            status="pending",
            locations=[{"path": "/home/ada/notes.md"}],
        )
        options = [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]
        self.request(
            "in",
            f"p-{call}",
            "session/request_permission",
            {"sessionId": session, "toolCall": {"toolCallId": call}, "options": options},
        )
        self.answer("out", f"p-{call}", {"outcome": {"outcome": "selected", "optionId": "yes"}}, after=2.0)
        self.update(session, "tool_call_update", toolCallId=call, status="in_progress")
        self.request("in", f"r-{call}", "fs/read_text_file", {"sessionId": session, "path": "/home/ada/notes.md"})
        self.answer("out", f"r-{call}", {"content": "one\n"})
        self.update(
            session,
            "tool_call_update",
            toolCallId=call,
            status="completed",
            content=[{"type": "diff", "path": "/home/ada/notes.md", "oldText": "one\n", "newText": "two\n"}],
        )

    def turn(self, number, text="Change the notes", session="s1"):
        """A whole turn: a thought, an edit with a permission, an answer in three chunks."""
        self.prompt(number, text, session)
        self.says(session, "Let me think.", "agent_thought_chunk")
        self.edit(session, call=f"c{number}")
        for word in ("I have ", "changed **the** ", "notes."):
            self.says(session, word)
        self.stop(number)
