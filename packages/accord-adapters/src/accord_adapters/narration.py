"""`Narration`: reports a framework's work in a turn to the client.

A framework reports its work as a stream of its own events. An adapter translates each event into one call here, and
needs nothing else of ACP. A tool call of a framework is two events with an id, and the work in between may happen in
another task; `turn.tool` is a block. So the open calls are stored here by the framework's ids, and those that the
framework never ended are ended with the turn: as cancelled, or as failed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Annotated, Any, Literal, Self, cast

import msgspec
from msgspec import Meta, Struct, field

from accord import Tool, Turn, updates, v1
from accord.schema.base import Json

REFUSED = "The user does not allow this."
"""The model's result for a call that the user has refused."""
NO_RESULT = "This call was cancelled, or its agent ended while it ran; it may have been done or not."
"""The model's result for a call of an earlier turn that has none."""


class Shown(Struct, frozen=True, kw_only=True):
    """How the agent's author wants its work shown."""

    kinds: Mapping[str, v1.ToolKind] = field(default_factory=dict[str, v1.ToolKind])
    """The kind of each tool's work, by the tool's name."""
    context: int | None = None
    """The size of the model's context in tokens."""


class OpenCall(Struct):
    """A tool call that has no result yet."""

    tool: Tool
    name: str
    arguments: Json
    is_asked: bool = False
    """Whether the user was asked about it."""


class Narration:
    """The work on one prompt as the client sees it: text, thoughts, tool calls, questions, plans and usage."""

    def __init__(self, turn: Turn[Any], shown: Shown) -> None:
        self.turn = turn
        self._shown = shown
        self._open: dict[str, OpenCall] = {}
        self._input = 0
        self._output = 0
        self._thought: int | None = None
        self._latest = 0
        """Tokens of the latest request and its answer."""

    async def say(self, text: str) -> None:
        """Show more of the model's text."""
        if text:
            await self.turn.say(text)

    async def think(self, text: str) -> None:
        """The model thinks more."""
        if text:
            await self.turn.think(text)

    async def tool_begins(self, call_id: str, name: str, arguments: object = None) -> None:
        """A tool is called; `arguments` are JSON text or plain values. A call that is open gets new arguments."""
        given = json_of(arguments)
        if entries := plan_in(name, given):
            await self.turn.plan(*entries)
        if call := self._open.get(call_id):
            call.arguments = given
            await call.tool.raw_input(given)
            return
        tool = self.turn.tool(name, name=name, kind=self._shown.kinds.get(name, "other"), raw_input=given)
        self._open[call_id] = OpenCall(await tool.__aenter__(), name, given)

    async def tool_ends(self, call_id: str, output: object, *, failed: bool = False) -> str:
        """A tool call has its result; returns it as text. A call that is not open is known to the client already."""
        simple = plain(output)
        text = simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
        if (call := self._open.pop(call_id, None)) is not None:
            tool = call.tool
            if text:
                await tool.text(text)
            await tool.raw_output(simple)
            if failed:
                await tool.fail()
            await tool.__aexit__(None, None, None)
        return text

    async def ask(self, call_id: str, name: str = "", arguments: object = None) -> bool:
        """Ask the user whether this tool call may run; False marks it as failed."""
        if call_id not in self._open:
            await self.tool_begins(call_id, name or call_id, arguments)
        call = self._open[call_id]
        call.is_asked = True
        return bool(await call.tool.ask())

    @property
    def only_open_call(self) -> str | None:
        """The id of the tool call that is open, if it is the only one."""
        return next(iter(self._open)) if len(self._open) == 1 else None

    def open_call(self, name: str, arguments: Json) -> str | None:
        """Return the id of an open tool call with this name and these arguments, about which the user was not asked
        yet.
        """
        for call_id, call in self._open.items():
            if (call.name, call.arguments, call.is_asked) == (name, arguments, False):
                return call_id
        return None

    async def keep(self) -> None:
        """Store the state of the session now: a crash loses at most the framework's next step."""
        await self.turn.session.save()

    async def used(self, read: int, written: int, *, thought: int | None = None) -> None:
        """A model has answered a request: it has read and written this many tokens."""
        self._input += read
        self._output += written
        self._latest = read + written
        if thought is not None:
            self._thought = (self._thought or 0) + thought
        self.turn.tokens(self._input, self._output, thought=self._thought)
        await self.turn.usage(self._latest, self._shown.context)

    async def costs(self, dollars: float) -> None:
        """The cost of the session so far."""
        await self.turn.usage(self._latest, self._shown.context, dollars)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            tool = self._open.popitem()[1].tool
            if kind is None:
                await tool.fail("This tool call got no result.")
            await tool.__aexit__(kind, error, trace)


def json_of(value: object) -> Json:
    """Return arguments as plain JSON values: those of a JSON text, or the text itself if it is not JSON."""
    if not isinstance(value, str):
        return plain(value)
    try:
        read: Json = json.loads(value) if value else {}
    except ValueError:
        return value
    return read


def plain(value: object) -> Json:
    """Return any value as plain JSON values; a value without such a form becomes its text."""
    try:
        simple: Json = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
        json.dumps(simple)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    return simple


def _plain(value: object) -> object:
    """A model of pydantic as its members; any other object as its text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


# Plans of frameworks: tools with which a model writes down its steps. PURE.


LISTS = {"write_todos": "todos", "TodoWrite": "todos", "todo_write": "todos", "update_plan": "plan"}
"""The tools that write a plan, and the argument that holds its steps."""


class Step(Struct):
    """A step, in the words of any of these tools."""

    status: Literal["pending", "in_progress", "completed"] = "pending"
    content: Annotated[str, Meta(min_length=1)] | None = None
    step: Annotated[str, Meta(min_length=1)] | None = None


def plan_in(name: str, arguments: Json) -> list[updates.PlanEntry]:
    """The steps that a call of this tool writes down; empty for any other tool."""
    member = LISTS.get(name)
    if member is None or not isinstance(arguments, dict):
        return []
    try:
        steps = msgspec.convert(cast("dict[str, Json]", arguments).get(member), list[Step])
    except msgspec.ValidationError:
        return []
    named = [(step, step.content or step.step) for step in steps]
    return [updates.PlanEntry(text, priority="medium", status=step.status) for step, text in named if text]
