"""Updates: what a session says and does, in the classes in which everyone reads it, whichever version it came in.

They are shaped by version 2, which can say everything: an update creates what it names, or changes the fields that it
carries. Version 1 has some updates of its own, which mean one of these (see `v1`).

In an upsert, a field left out, `null` and a value are three things: as it was, cleared, replaced. A list is replaced
whole, and an empty one clears like `null`. `_meta` alone is patched key by key: a key that is left out stays, `null`
removes it.
"""

# pyright: reportGeneralTypeIssues=false
# It imports UNSET, which is Final.

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NewType, Self, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from accord.schema.base import (
    Json,
    Model,
    Open,
    Patch,
    Tolerant,
    Unknown,
    Unstable,
    Upsert,
    ValidItems,
    every,
    needs,
    words,
)
from accord.schema.content import ContentBlock, MediaType, as_block

AbsolutePath: TypeAlias = Annotated[str, "AbsolutePath"]
"""A whole path, in the words of the agent's machine; no URI."""


class _InBothVersions(Model):
    """A value of which each version has a class of its own, with its own conditions; equal values of both are equal."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)) or isinstance(self, type(other)):
            return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__struct_fields__))


# Messages, whole and as they stream: what the user, the agent and its thinking say.
#
# A whole message replaces what was there. User messages, agent messages and thoughts have id spaces of their own.


MessageId = NewType("MessageId", str)


class ContentChunk(_InBothVersions):
    """Part of a message; parts with the same `message_id` belong together."""

    content: ContentBlock
    message_id: Tolerant[MessageId | None] = None

    @classmethod
    def of(cls, content: str | ContentBlock, message_id: MessageId | None = None) -> Self:
        """
        >>> AgentMessageChunk.of("Hello")
        AgentMessageChunk(content=TextContent(text='Hello'))
        """
        block = as_block(content)
        return cls(block) if message_id is None else cls(block, message_id)


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk"):
    """Part of a user's message, sent when a session is replayed."""


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """Part of a message of the agent."""


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """Part of a thought of the agent."""


class UserMessage(Upsert, tag_field="sessionUpdate", tag="user_message"):
    """A whole message of the user, sent when a prompt is accepted and in a replay."""

    message_id: MessageId
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET

    @classmethod
    def of(cls, message_id: MessageId, *content: str | ContentBlock) -> Self:
        return cls(message_id, [as_block(block) for block in content])


class AgentMessage(Upsert, tag_field="sessionUpdate", tag="agent_message"):
    """A whole message of the agent."""

    message_id: MessageId
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET

    @classmethod
    def of(cls, message_id: MessageId, *content: str | ContentBlock) -> Self:
        return cls(message_id, [as_block(block) for block in content])


class AgentThought(Upsert, tag_field="sessionUpdate", tag="agent_thought"):
    """A whole thought of the agent."""

    message_id: MessageId
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET

    @classmethod
    def of(cls, message_id: MessageId, *content: str | ContentBlock) -> Self:
        return cls(message_id, [as_block(block) for block in content])


# Plans: what an agent means to do, step by step.


PlanId = NewType("PlanId", str)

MAIN_PLAN = PlanId("main")
"""The id of the plan of an agent that has only one, without an id."""
PlanEntryPriority: TypeAlias = Annotated[str, words("high", "medium", "low")]
PlanEntryStatus: TypeAlias = Annotated[str, words("pending", "in_progress", "completed", "cancelled")]


class PlanEntry(_InBothVersions):
    """One step of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus

    @classmethod
    def of(cls, content: str, *, status: PlanEntryStatus = "pending", priority: PlanEntryPriority = "medium") -> Self:
        return cls(content, priority, status)


class PlanItems(_InBothVersions, tag_field="type", tag="items"):
    """A plan as a list of steps."""

    plan_id: PlanId
    entries: ValidItems[PlanEntry]


class PlanMarkdown(_InBothVersions, tag_field="type", tag="markdown"):
    """A plan as Markdown text; `path` is the file that holds it, if there is one."""

    plan_id: PlanId
    content: str
    path: Tolerant[AbsolutePath | None] = None


PlanUpdateContent: TypeAlias = Annotated[Open[PlanItems | PlanMarkdown], every("planId")]


class PlanUpdate(_InBothVersions, tag_field="sessionUpdate", tag="plan_update"):
    """A plan in its present state; it replaces the one with the same id."""

    plan: PlanUpdateContent

    @classmethod
    def of(cls, plan_id: PlanId, *entries: str | PlanEntry) -> PlanUpdate:
        steps = [PlanEntry.of(entry) if isinstance(entry, str) else entry for entry in entries]
        return cls(PlanItems(plan_id, steps))


@needs("plan")
class PlanRemoved(Model, tag_field="sessionUpdate", tag="plan_removed"):
    """A plan that no longer applies; the client removes it."""

    plan_id: PlanId


# Diffs: which files changed and how, and a patch to show. Proposal: diff-file-states.
#
# `changes` says what happened to which file, also where no text tells it (a move, a picture); `patch` is for reading,
# and may be left out.


DiffFileType: TypeAlias = Annotated[str, words("text", "binary", "directory", "symlink")]
DiffPatchFormat: TypeAlias = Annotated[str, words("git_patch")]


class DiffPathChange(Model):
    """A change of one file; type and MIME type are those after it (of a deleted file: before it)."""

    path: AbsolutePath
    file_type: Tolerant[DiffFileType | None] = None
    mime_type: Tolerant[MediaType | None] = None


class DiffAdd(DiffPathChange, tag_field="operation", tag="add"):
    """A file that was created."""


class DiffDelete(DiffPathChange, tag_field="operation", tag="delete"):
    """A file that was deleted."""


class DiffModify(DiffPathChange, tag_field="operation", tag="modify"):
    """A file whose contents changed."""


class DiffPathPairChange(Model):
    """A change from one path to another."""

    old_path: AbsolutePath
    path: AbsolutePath
    file_type: Tolerant[DiffFileType | None] = None
    mime_type: Tolerant[MediaType | None] = None


class DiffMove(DiffPathPairChange, tag_field="operation", tag="move"):
    """A file that was moved."""


class DiffCopy(DiffPathPairChange, tag_field="operation", tag="copy"):
    """A file that was copied."""


DiffChange: TypeAlias = Open[DiffAdd | DiffDelete | DiffModify | DiffMove | DiffCopy]


class DiffPatch(Model):
    """The changes as text for people."""

    format: DiffPatchFormat
    text: str


class Diff(Model, tag_field="type", tag="diff"):
    """Changed files: `changes` is authoritative, `patch` shows some or all of it."""

    changes: ValidItems[DiffChange]
    patch: Tolerant[DiffPatch | None] = None

    @classmethod
    def of(cls, path: AbsolutePath, new_text: str, old_text: str | None = None) -> Diff:
        """The diff of one text file: its whole text before (None for a new file) and after."""
        from accord.schema import git_patch  # loads difflib, which few programs need

        change = DiffAdd(path, "text") if old_text is None else DiffModify(path, "text")

        return cls([change], DiffPatch("git_patch", git_patch.write(path, old_text, new_text)))

    @property
    def summary(self) -> list[str]:
        """What happened to each file, a line each; for a diff without a patch.

        >>> Diff([DiffAdd("/a"), DiffMove("/b", "/c")]).summary
        ['added /a', 'moved /b to /c']
        """
        return [_line(change) for change in self.changes]


def _line(change: DiffChange) -> str:
    if isinstance(change, Unknown):
        return change.tag
    done = _DONE[type(change)]
    if isinstance(change, DiffPathPairChange):
        return f"{done} {change.old_path} to {change.path}"
    return f"{done} {change.path}"


_DONE: dict[type, str] = {
    DiffAdd: "added",
    DiffDelete: "deleted",
    DiffModify: "modified",
    DiffMove: "moved",
    DiffCopy: "copied",
}


# Tool calls: what an agent does, and what came of it. Proposals: tool-call-updates, diff-file-states.
#
# One upsert both begins and changes a tool call; content may be streamed.


SessionId = NewType("SessionId", str)
ToolCallId = NewType("ToolCallId", str)
TerminalId = NewType("TerminalId", str)
ToolKind: TypeAlias = Annotated[
    str,
    words("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"),
]
ToolCallStatus: TypeAlias = Annotated[
    str, words("pending", "in_progress", "paused", "completed", "failed", "cancelled")
]


class Content(Model, tag_field="type", tag="content"):
    """Content that a tool produced."""

    content: ContentBlock

    @classmethod
    def of(cls, content: str | ContentBlock) -> Content:
        return cls(as_block(content))


class Terminal(Model, tag_field="type", tag="terminal"):
    """The live output of a terminal, as content of a tool call."""

    terminal_id: TerminalId


class SessionReference(Model, tag_field="type", tag="session"):
    """Another session, as content of the tool call that started it."""

    session_id: SessionId


class TextDiff(_InBothVersions, tag_field="type", tag="diff"):
    """A changed file: its whole text before (None for a new file) and after (empty for a `deleted` file)."""

    path: str
    new_text: str
    old_text: Tolerant[str | None] = None
    deleted: Unstable[Tolerant[bool]] = False

    def unified(self) -> str:
        """The change as a unified diff, for showing it as text; empty if nothing differs.

        >>> print(TextDiff("a.txt", "one\\n2\\n", "one\\ntwo\\n").unified())
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


if TYPE_CHECKING:
    # A `TextDiff` stands for the `Diff` that the dialect of version 2 makes of it, and is what version 1 sends.
    ToolCallContent: TypeAlias = Content | Diff | TextDiff | Terminal | SessionReference | Unknown
else:
    ToolCallContent = Open[Content | Diff | Terminal | SessionReference]


class ToolCallLocation(_InBothVersions):
    """A place in a file that a tool works on, which an editor can follow."""

    path: AbsolutePath
    line: Tolerant[Annotated[int, Meta(ge=1, le=2**32 - 1)] | None] = None


class ToolCallCancelCapabilities(Model):
    """Declares that the client may cancel a tool call."""


class ToolCallCapabilities(Model):
    """The client's present options for a tool call."""

    cancel: Tolerant[ToolCallCancelCapabilities | None] = None


class ToolCallUpdate(Upsert):
    """A tool call, or changes to it; the defaults are kind `other` and status `pending`."""

    tool_call_id: ToolCallId
    title: Tolerant[Patch[str]] = UNSET
    kind: Tolerant[Patch[ToolKind]] = UNSET
    status: Tolerant[Patch[ToolCallStatus]] = UNSET
    content: Tolerant[Patch[ValidItems[ToolCallContent]]] = UNSET
    locations: Tolerant[Patch[ValidItems[ToolCallLocation]]] = UNSET
    raw_input: Tolerant[Json | UnsetType] = UNSET
    raw_output: Tolerant[Json | UnsetType] = UNSET
    name: Tolerant[Patch[str]] = UNSET
    capabilities: Tolerant[Patch[ToolCallCapabilities]] = UNSET


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update"):
    """A `ToolCallUpdate` as a session update."""

    @classmethod
    def reading(cls, tool_call_id: ToolCallId, path: str, *, title: str | None = None) -> ToolCallProgress:
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
    ) -> ToolCallProgress:
        """A file is being changed; the diff shows how."""
        diff, place = Diff.of(path, new_text, old_text), ToolCallLocation(path)
        return cls(tool_call_id, title or f"Edit {path}", "edit", "pending", [diff], [place])


class ToolCallContentChunk(Model, tag_field="sessionUpdate", tag="tool_call_content_chunk"):
    """An item to append to a tool call's content."""

    tool_call_id: ToolCallId
    content: ToolCallContent
