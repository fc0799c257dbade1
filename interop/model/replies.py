"""What a model made of rules was asked, and what it says: the same for every API."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

SENTENCE = "Hello from a model that is made of rules."
AFTERWARDS = "The file is written."
CALLED = "The tool has answered."
CONTENT = "Written by a model that is made of rules.\n"
TICKS, TICK_SECONDS = 1200, 0.05

Json = dict[str, Any]

_numbers = count(1)


@dataclass(frozen=True)
class Words:
    """A piece of text."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A tool to be called."""

    name: str
    arguments: Json
    freeform: str | None = None
    """What a tool that takes text instead of JSON gets."""


@dataclass(frozen=True)
class Thinking:
    """A piece of what the model thinks; chat completions can send it."""

    text: str


Piece = Words | ToolCall | Thinking


@dataclass
class Asked:
    """What a request of any kind comes down to."""

    text: str = ""
    tools: dict[str, Json] = field(default_factory=dict[str, Json])
    answered: bool = False
    """A tool has answered since the user's last words."""
    freeform: set[str] = field(default_factory=set[str])
    namespaces: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Tools that have a name of two parts: the name of their server, and theirs."""

    def said(self, text: str) -> None:
        if "EDIT " in text or "TOOL " in text or "STREAM" in text or not self.text or not text.lstrip().startswith("<"):
            self.text, self.answered = text, False


def reply(asked: Asked) -> Iterator[Piece]:
    """What the model says."""
    wanted = re.search(r"EDIT (\S+)", asked.text)
    named = re.search(r"TOOL (\w+)", asked.text)
    if named and not asked.answered and (found := offered(asked, named[1])):
        yield ToolCall(found, {"left": 2, "right": 3})
    elif named and asked.answered:
        yield from words(CALLED)
    elif wanted and not asked.answered and (call := writing(asked, wanted[1])):
        yield call
    elif wanted and asked.answered:
        yield from words(AFTERWARDS)
    elif "STREAM" in asked.text and asked.tools:
        for number in range(TICKS):
            time.sleep(TICK_SECONDS)
            yield Words(f"tick {number} ")
    else:
        yield from words(SENTENCE)


def offered(asked: Asked, name: str) -> str | None:
    """What the agent calls this tool: it puts the name of the tool's server before it."""
    return next((it for it in asked.tools if it == name or it.endswith(f"_{name}")), None)


def words(text: str) -> Iterator[Piece]:
    yield from (Words(word) for word in re.findall(r"\S+\s*", text))


WRITERS: dict[str, tuple[str, str]] = {
    "Write": ("file_path", "content"),
    "write_file": ("file_path", "content"),
    "write": ("filePath", "content"),
}
"""Tools that write a file: what they call its path, and its text."""


def writing(asked: Asked, path: str) -> ToolCall | None:
    """A call that writes this file, with whichever tool the agent has for it."""
    patch = f"*** Begin Patch\n*** Add File: {path}\n+{CONTENT.strip()}\n*** End Patch"
    for name, (where, what) in WRITERS.items():
        if name in asked.tools:
            named = asked.tools[name].get("properties", {})
            return ToolCall(name, {name_of(named, where, "path"): path, name_of(named, what, "text"): CONTENT})
    if "apply_patch" in asked.tools:
        return ToolCall("apply_patch", {"input": patch, "patchText": patch}, freeform=patch)
    shell = f"printf '%s\\n' '{CONTENT.strip()}' > '{path}'"
    if "exec_command" in asked.tools:
        escalated = {"sandbox_permissions": "require_escalated", "justification": "May I write this file?"}
        return ToolCall("exec_command", {"cmd": shell, **escalated})
    return None


def name_of(named: Json, usual: str, other: str) -> str:
    """What a tool calls a parameter, among those that it has."""
    return other if usual not in named and other in named else usual


def fresh(kind: str) -> str:
    """An id that nothing else has: agents keep them, and make them ids of messages."""
    return f"{kind}_{next(_numbers)}_{time.monotonic_ns()}"


def text_of(content: Any) -> str:
    """The text in a message's content, whichever form it has."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))


def data(value: Json) -> str:
    """One server-sent event without a name."""
    return f"data: {json.dumps(value)}\n\n"


def event(kind: str, value: Json) -> str:
    """One server-sent event that says what it is."""
    return f"event: {kind}\n{data({'type': kind, **value})}"
