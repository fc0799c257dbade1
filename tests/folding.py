"""Random updates of a session, as plain JSON, for tests of what they amount to."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


class Script:
    """Makes random updates of one version, which often concern the same things: there are few ids."""

    def __init__(self, dice: random.Random, version: int) -> None:
        self.dice = dice
        kinds = _VERSION_2 if version == 2 else _VERSION_1
        self._kinds = [kind for kind, weight in kinds.items() for _ in range(weight)]

    def update(self) -> Json:
        kind = self.dice.choice(self._kinds)
        made = {"sessionUpdate": kind, **_FIELDS[kind](self)}
        return made if kind != "tool_call_update" or self._is_2 else _without_patches(made)

    @property
    def _is_2(self) -> bool:
        return "state_update" in self._kinds

    # Values

    def id(self) -> str:
        return self.dice.choice("abc")

    def word(self) -> str:
        return self.dice.choice(["", "Hi", " there", "né", "\U0001f44d", "two\nlines", "日本"])

    def meta(self) -> Json:
        keys = {key: self.dice.choice([None, 1, {"deep": self.word()}, [None]]) for key in "xyz"}
        return {key: value for key, value in keys.items() if self.dice.random() < 0.5}

    def maybe(self, **fields: Callable[[], Any]) -> Json:
        """Some of these fields; some of those are `null`."""
        made: Json = {}
        for name, make in fields.items():
            luck = self.dice.random()
            if luck < 0.4:
                made["_meta" if name == "meta" else name] = None if luck < 0.1 else make()
        return made

    def some(self, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(self.dice.randint(0, 3))]

    def block(self) -> Json:
        text = {"type": "text", "text": self.word()}
        return self.dice.choice(
            [
                text,
                text,
                text,
                {**text, "annotations": {"audience": ["user"], "priority": 0.5}},
                {**text, "_meta": {"n": self.word()}},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "resource_link", "name": self.id(), "uri": "file:///x"},
                {"type": "resource", "resource": {"text": self.word(), "uri": "file:///y"}},
                {"type": "_hologram", "depth": [1, None]},
            ]
        )

    def item(self) -> Json:
        if self._is_2:
            diff = {"type": "diff", "changes": [{"operation": "move", "oldPath": "/a", "path": "/b"}]}
        else:
            diff = {"type": "diff", "path": "/a", "newText": self.word(), "oldText": "old"}
        return self.dice.choice(
            [
                {"type": "content", "content": self.block()},
                {"type": "content", "content": self.block(), "_meta": {"n": 1}},
                diff,
                {"type": "terminal", "terminalId": self.id()},
                {"type": "_session", "sessionId": "child"},
            ]
        )

    def place(self) -> Json:
        return {"path": f"/{self.id()}", "line": self.dice.randint(1, 9)}

    def data(self) -> str:
        return base64.b64encode(self.word().encode()[: self.dice.randint(0, 5)]).decode()

    def step(self) -> Json:
        words = ["pending", "in_progress", "completed"] + ["cancelled", "_odd"] * self._is_2
        return {"content": self.word(), "priority": "low", "status": self.dice.choice(words)}

    def plan(self) -> Json:
        return {
            "planId": self.id(),
            **self.dice.choice(
                [
                    {"type": "items", "entries": self.some(self.step)},
                    {"type": "markdown", "content": self.word()},
                    {"type": "file", "uri": "file:///plan"},
                    {"type": "_canvas", "strokes": [1]},
                ]
            ),
        }

    def option(self) -> Json:
        name = self.id()
        return {
            ("configId" if self._is_2 else "id"): name,
            "name": name.upper(),
            "type": "select",
            "currentValue": "1",
            "options": [{"value": "1", "name": "One"}],
        }

    def command(self) -> Json:
        return {**({"type": "command"} if self._is_2 else {}), "name": self.id(), "description": self.word()}

    def work(self) -> Json:
        return self.dice.choice([{"type": "tool_call", "toolCallId": "a"}, {"type": "terminal", "terminalId": "b"}])

    def state(self) -> Json:
        kind = self.dice.choice(["running", "idle", "requires_action", "unknown"])
        made: Json = {"state": kind}
        if kind == "idle" and self.dice.random() < 0.6:
            made["stopReason"] = self.dice.choice(["end_turn", "cancelled", "_tired"])
        if self._is_2 and self.dice.random() < 0.5:
            made["background"] = self.some(self.work)
        return made

    def some_info(self) -> Json:
        return self.maybe(title=self.word, updatedAt=lambda: "2026-11-22T08:00:00Z", meta=self.meta)


def _without_patches(made: Json) -> Json:
    """A change of a tool call as version 1 has it: `null` is left out, and words are those of version 1."""
    words = {"paused": "in_progress", "cancelled": "failed", "_odd": "completed"}
    if "status" in made:
        made["status"] = words.get(made["status"], made["status"])
    if made.get("kind") == "_dream":
        made["kind"] = "think"
    made.pop("capabilities", None)
    return {name: value for name, value in made.items() if value is not None}


def _message(script: Script) -> Json:
    return {
        "messageId": script.id(),
        **script.maybe(content=lambda: script.some(script.block), meta=script.meta),
    }


def _chunk(script: Script) -> Json:
    return {"messageId": script.id(), "content": script.block()}


def _chunk_with_or_without_id(script: Script) -> Json:
    made = _chunk(script)
    if script.dice.random() < 0.5:
        del made["messageId"]
    return made


def _call(script: Script) -> Json:
    return {
        "toolCallId": script.id(),
        **script.maybe(
            title=lambda: script.word() or "Look",
            kind=lambda: script.dice.choice(["read", "edit", "_dream"]),
            status=lambda: script.dice.choice(["pending", "in_progress", "paused", "completed", "cancelled", "_odd"]),
            content=lambda: script.some(script.item),
            locations=lambda: script.some(script.place),
            rawInput=lambda: {"a": script.word()},
            rawOutput=lambda: [script.word()],
            name=lambda: script.word() or "sh",
            capabilities=lambda: {"cancel": {}},
            meta=lambda: script.meta(),
        ),
    }


def _first_call(script: Script) -> Json:
    made = _without_patches(_call(script))
    return {"title": "Begin", **made}


def _terminal(script: Script) -> Json:
    return {
        "terminalId": script.id(),
        **script.maybe(
            command=lambda: script.word() or "make",
            cwd=lambda: "/w",
            output=lambda: {"data": script.data()},
            exitStatus=lambda: script.dice.choice([{}, {"exitCode": -1}, {"signal": "KILL"}]),
            size=lambda: {"cols": 80, "rows": 24},
            capabilities=lambda: {"cancel": {}},
            meta=script.meta,
        ),
    }


def _letter(script: Script) -> Json:
    return {
        "messageId": script.id(),
        **script.maybe(
            senderSessionId=script.id,
            recipientMessageId=script.id,
            content=lambda: script.some(script.block),
            meta=script.meta,
        ),
    }


def _subagent(script: Script) -> Json:
    return {
        "sessionId": script.id(),
        **script.maybe(
            title=lambda: script.word() or "Search",
            description=lambda: script.word() or "All",
            state=script.state,
            cwd=lambda: "/w",
            additionalDirectories=lambda: ["/lib"],
            meta=script.meta,
        ),
    }


_FIELDS: dict[str, Callable[[Script], Json]] = {
    "user_message": _message,
    "agent_message": _message,
    "agent_thought": _message,
    "user_message_chunk": _chunk,
    "agent_message_chunk": _chunk,
    "agent_thought_chunk": _chunk,
    "tool_call": _first_call,
    "tool_call_update": _call,
    "tool_call_content_chunk": lambda it: {"toolCallId": it.id(), "content": it.item()},
    "terminal_update": _terminal,
    "terminal_output_chunk": lambda it: {"terminalId": it.id(), "data": it.data()},
    "plan": lambda it: {"entries": it.some(it.step)},
    "plan_update": lambda it: {"plan": it.plan()},
    "plan_removed": lambda it: {"planId": it.id()},
    "session_info_update": lambda it: it.some_info(),
    "usage_update": lambda it: {
        "used": it.dice.randint(0, 9),
        "size": 10,
        **it.maybe(cost=lambda: {"amount": 1.5, "currency": "EUR"}),
    },
    "available_commands_update": lambda it: {"availableCommands": it.some(it.command)},
    "config_option_update": lambda it: {"configOptions": it.some(it.option)},
    "current_mode_update": lambda it: {"currentModeId": it.id()},
    "state_update": lambda it: it.state(),
    "compaction_update": lambda it: {
        "compactionId": it.id(),
        "status": it.dice.choice(["in_progress", "completed", "_odd"]),
        **it.maybe(summary=lambda: it.some(it.block), error=lambda: it.word() or "no", meta=it.meta),
    },
    "compaction_summary_chunk": lambda it: {"compactionId": it.id(), "content": it.block()},
    "subagent_update": _subagent,
    "session_message": _letter,
    "session_message_chunk": lambda it: {"messageId": it.id(), "content": it.block()},
    "notice": lambda it: {"severity": "info", "title": it.word() or "Note"},
    "_example.com/glow": lambda it: {"depth": [it.word(), None]},
}

_BOTH = {
    "user_message_chunk": 3,
    "agent_message_chunk": 6,
    "agent_thought_chunk": 2,
    "tool_call_update": 6,
    "plan_update": 2,
    "plan_removed": 1,
    "session_info_update": 2,
    "usage_update": 2,
    "available_commands_update": 1,
    "config_option_update": 1,
    "compaction_update": 1,
    "compaction_summary_chunk": 1,
    "subagent_update": 1,
    "session_message": 1,
    "session_message_chunk": 1,
    "notice": 1,
    "_example.com/glow": 1,
}
_VERSION_1 = {**_BOTH, "tool_call": 2, "plan": 2, "current_mode_update": 1}
_VERSION_2 = {
    **_BOTH,
    "user_message": 2,
    "agent_message": 4,
    "agent_thought": 1,
    "tool_call_content_chunk": 4,
    "terminal_update": 3,
    "terminal_output_chunk": 3,
    "state_update": 2,
}


def joined(blocks: list[Json]) -> list[Json]:
    """Blocks in which adjacent plain text is one block, and empty text is none."""
    made: list[Json] = []
    for block in blocks:
        if block == {"type": "text", "text": ""}:
            continue
        if made and block.keys() == made[-1].keys() == {"type", "text"}:
            made[-1] = {**block, "text": made[-1]["text"] + block["text"]}
        else:
            made.append(block)
    return made
