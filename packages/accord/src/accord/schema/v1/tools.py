"""Tool calls: what an agent does, and what came of it. Page: tool-calls."""

from __future__ import annotations

from typing import Literal, NewType, TypeAlias

from accord.schema.base import Json, Model, Open, Tolerant, Uint32, Unstable, ValidItems
from accord.schema.v1.content import ContentBlock, as_block
from accord.schema.v1.terminal import TerminalId

ToolCallId = NewType("ToolCallId", str)

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolCallStatus = Literal["pending", "in_progress", "completed", "failed"]


class Content(Model, tag_field="type", tag="content"):
    """Content that a tool produced."""

    content: ContentBlock

    @classmethod
    def of(cls, content: str | ContentBlock) -> Content:
        return cls(as_block(content))


class Diff(Model, tag_field="type", tag="diff"):
    """A changed file: its whole text before (None for a new file) and after (empty for a `deleted` file)."""

    path: str
    new_text: str
    old_text: Tolerant[str | None] = None
    deleted: Unstable[Tolerant[bool]] = False

    def unified(self) -> str:
        """The change as a unified diff, for showing it as text; empty if nothing differs.

        >>> print(Diff("a.txt", "one\\n2\\n", "one\\ntwo\\n").unified())
        --- a.txt
        +++ a.txt
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        """
        import difflib  # here, so that agents that only send diffs do not load it

        old, new = (self.old_text or "").splitlines(), self.new_text.splitlines()
        return "\n".join(difflib.unified_diff(old, new, self.path, self.path, lineterm=""))


class Terminal(Model, tag_field="type", tag="terminal"):
    """The live output of a terminal, as content of a tool call."""

    terminal_id: TerminalId


ToolCallContent: TypeAlias = Open[Content | Diff | Terminal]


class ToolCallLocation(Model):
    """A place in a file that a tool works on, which an editor can follow."""

    path: str
    line: Tolerant[Uint32 | None] = None


class ToolCall(Model, tag_field="sessionUpdate", tag="tool_call"):
    """The start of a tool call."""

    tool_call_id: ToolCallId
    title: str
    kind: Tolerant[ToolKind | None] = None
    status: Tolerant[ToolCallStatus | None] = None
    content: Tolerant[ValidItems[ToolCallContent]] = []
    locations: Tolerant[ValidItems[ToolCallLocation]] = []
    raw_input: Tolerant[Json] = None
    raw_output: Tolerant[Json] = None
    name: Tolerant[str | None] = None

    @classmethod
    def reading(cls, tool_call_id: ToolCallId, path: str, *, title: str | None = None) -> ToolCall:
        """A file is being read."""
        return cls(tool_call_id, title or f"Read {path}", "read", "pending", locations=[ToolCallLocation(path)])

    @classmethod
    def editing(
        cls,
        tool_call_id: ToolCallId,
        path: str,
        new_text: str,
        old_text: str | None = None,
        *,
        title: str | None = None,
    ) -> ToolCall:
        """A file is being changed; the diff shows how."""
        diff, place = Diff(path, new_text, old_text), ToolCallLocation(path)
        return cls(tool_call_id, title or f"Edit {path}", "edit", "pending", [diff], [place])


class ToolCallUpdate(Model):
    """Changes to a tool call; an omitted field stays as it was, a list replaces the one before."""

    tool_call_id: ToolCallId
    title: Tolerant[str | None] = None
    kind: Tolerant[ToolKind | None] = None
    status: Tolerant[ToolCallStatus | None] = None
    content: Tolerant[ValidItems[ToolCallContent] | None] = None
    locations: Tolerant[ValidItems[ToolCallLocation] | None] = None
    raw_input: Tolerant[Json] = None
    raw_output: Tolerant[Json] = None
    name: Tolerant[str | None] = None


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update"):
    """A `ToolCallUpdate` as a session update."""
