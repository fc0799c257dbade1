"""Updates: the events of a session, in the classes in which all code reads them, whichever version they came in.

They are shaped by version 2, which can express everything: an update creates the thing it names, or changes the fields
that it contains. Version 1 has some updates of its own, each of which means one of these (see `v1`).

In an upsert, an omitted field, `null` and a value are three things: unchanged, cleared, replaced. A list is replaced
whole, and an empty one clears like `null`. Only `_meta` is patched key by key: an omitted key stays, `null` removes it.
"""

# pyright: reportGeneralTypeIssues=false
# It imports UNSET, which is Final.

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NewType, Self, TypeAlias, cast

from msgspec import UNSET, Meta, UnsetType

from accord.schema.base import (
    Int32,
    Int64,
    Json,
    Model,
    Open,
    Patch,
    Shape,
    Tolerant,
    Uint64,
    Unknown,
    Unstable,
    Upsert,
    ValidItems,
    choice,
    every,
    needs,
    second_tag,
    unstable,
    words,
)
from accord.schema.content import ContentBlock, MediaType, as_block

AbsolutePath: TypeAlias = Annotated[str, "AbsolutePath"]
"""A whole path, in the words of the agent's machine; no URI."""


class _EqualAcrossVersions:
    """A value for which a version has its own class, with its own conditions; equal values of both are equal."""

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)) or isinstance(self, type(other)):
            others: tuple[str, ...] = getattr(other, "__struct_fields__", ())
            names = {*self.__struct_fields__, *others}
            return all(getattr(self, name, None) == getattr(other, name, None) for name in names)
        return NotImplemented

    def __hash__(self) -> int:
        values = (getattr(self, name) for name in self.__struct_fields__)
        return hash(tuple(value for value in values if value is not None))


class _InBothVersions(_EqualAcrossVersions, Model): ...


class _UpsertInBothVersions(_EqualAcrossVersions, Upsert): ...


# Messages of the user and the agent, and the agent's thoughts, whole and as they stream.
#
# A whole message replaces earlier content. User messages, agent messages and thoughts have separate id spaces.


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


# Plans: an agent's intentions, step by step.


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
    """Return a plan as a list of steps."""

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
# `changes` has the kind of change of each file, even without a text (a move, a picture); `patch` is for reading, and
# may be left out.


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
        """Return the kind of change of each file, a line each; for a diff without a patch.

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


# Tool calls: an agent's actions and their results. Proposals: tool-call-updates, diff-file-states.
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
        """Return the change as a unified diff, for showing it as text; empty if nothing differs.

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
    # The dialect of version 2 converts a `TextDiff` to a `Diff`; version 1 sends it unchanged.
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
        """Return an update that reports a change of a file; the diff shows it."""
        diff, place = Diff.of(path, new_text, old_text), ToolCallLocation(path)
        return cls(tool_call_id, title or f"Edit {path}", "edit", "pending", [diff], [place])


class ToolCallContentChunk(Model, tag_field="sessionUpdate", tag="tool_call_content_chunk"):
    """An item to append to a tool call's content."""

    tool_call_id: ToolCallId
    content: ToolCallContent


# Slash commands and skills that an agent offers.


class TextCommandInput(_InBothVersions, tag_field="type", tag="text"):
    """Free text after a command's name; the hint says what to type."""

    hint: str


AvailableCommandInput: TypeAlias = Open[TextCommandInput]


class Command(_InBothVersions, tag_field="type", tag="command"):
    """A slash command that the agent offers; its name has no slash."""

    name: str
    description: str
    input: Tolerant[AvailableCommandInput | None] = None

    @classmethod
    def of(cls, name: str, description: str, hint: str | None = None) -> Command:
        return cls(name, description, TextCommandInput(hint) if hint is not None else None)


@unstable
class Skill(Model, tag_field="type", tag="skill"):
    """A skill that the user can name in a prompt; `path` is the folder or file that holds it."""

    name: str
    description: str
    path: Tolerant[AbsolutePath | None] = None


AvailableCommand: TypeAlias = Annotated[Open[Command | Skill], every("name", "description")]


class AvailableCommandsUpdate(_InBothVersions, tag_field="sessionUpdate", tag="available_commands_update"):
    """The commands available now; they replace the earlier list."""

    available_commands: ValidItems[AvailableCommand]


# Config options: a user's choices about a session. A mode is an option; older agents have only modes.


SessionConfigId = NewType("SessionConfigId", str)
SessionConfigValueId = NewType("SessionConfigValueId", str)
SessionConfigGroupId = NewType("SessionConfigGroupId", str)
SessionConfigOptionCategory: TypeAlias = Annotated[
    str, words("mode", "model", "model_config", "thought_level", "speed")
]
"""The topic of an option, so that a client can place it well. Names of your own begin with `_`."""


class SessionConfigSelectOption(Model):
    """One value of a select option."""

    value: SessionConfigValueId
    name: str
    description: Tolerant[str | None] = None


class SessionConfigSelectGroup(_InBothVersions):
    """Values of a select option under a common heading."""

    group_id: SessionConfigGroupId
    name: str
    options: Tolerant[ValidItems[SessionConfigSelectOption]]


def _flat_or_grouped(value: Json) -> Any:
    if not isinstance(value, list):
        return None
    items = cast("list[Json]", value)
    grouped = bool(items) and all(isinstance(item, dict) and "groupId" in item for item in items)
    return list[SessionConfigSelectGroup] if grouped else list[SessionConfigSelectOption]


if TYPE_CHECKING:
    SessionConfigSelectOptions: TypeAlias = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
else:
    SessionConfigSelectOptions = choice(
        "SessionConfigSelectOptions",
        _flat_or_grouped,
        list[SessionConfigSelectOption],
        list[SessionConfigSelectGroup],
    )


class SessionConfigSelect(_InBothVersions, tag_field="type", tag="select"):
    """A config option with one of several values."""

    config_id: SessionConfigId
    name: str
    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions
    description: Tolerant[str | None] = None
    category: Tolerant[SessionConfigOptionCategory | None] = None


class SessionConfigBoolean(_InBothVersions, tag_field="type", tag="boolean"):
    """A config option that is on or off."""

    config_id: SessionConfigId
    name: str
    current_value: bool
    description: Tolerant[str | None] = None
    category: Tolerant[SessionConfigOptionCategory | None] = None


SessionConfigOption: TypeAlias = Annotated[Open[SessionConfigSelect | SessionConfigBoolean], every("configId", "name")]


class ConfigOptionUpdate(_InBothVersions, tag_field="sessionUpdate", tag="config_option_update"):
    """All config options of the session, with their present values."""

    config_options: ValidItems[SessionConfigOption]


SessionModeId = NewType("SessionModeId", str)


class SessionMode(Model):
    """A way of working that the agent offers for a session."""

    id: SessionModeId
    name: str
    description: Tolerant[str | None] = None


class CurrentModeUpdate(Model, tag_field="sessionUpdate", tag="current_mode_update"):
    """The session's mode after a change."""

    current_mode_id: SessionModeId


ModelId = NewType("ModelId", str)


@unstable
class ModelInfo(Model):
    """A model that the agent offers for a session."""

    model_id: ModelId
    name: str
    description: Tolerant[str | None] = None


# Terminals of an agent: commands it runs itself, for the client to show.


_CellCount = Annotated[int, Meta(ge=1, le=2**16 - 1)]


class TerminalExitStatus(Model):
    """The end of a terminal's command, even if no details are known."""

    exit_code: Tolerant[Int64 | None] = None
    signal: Tolerant[str | None] = None


class TerminalOutput(Model):
    """The whole stored output, encoded in base64."""

    data: str

    @classmethod
    def of(cls, output: bytes) -> TerminalOutput:
        return cls(base64.b64encode(output).decode("ascii"))


class TerminalSize(Model):
    """The number of columns and rows of a terminal."""

    cols: _CellCount
    rows: _CellCount


class TerminalCancelCapabilities(Model):
    """Declares that the client may cancel a terminal's command."""


class TerminalCapabilities(Model):
    """The client's present options for a terminal."""

    cancel: Tolerant[TerminalCancelCapabilities | None] = None


class TerminalUpdate(Upsert, tag_field="sessionUpdate", tag="terminal_update"):
    """A terminal, or changes to it."""

    terminal_id: TerminalId
    command: Tolerant[Patch[str]] = UNSET
    cwd: Tolerant[Patch[AbsolutePath]] = UNSET
    output: Tolerant[Patch[TerminalOutput]] = UNSET
    exit_status: Tolerant[Patch[TerminalExitStatus]] = UNSET
    size: Tolerant[Patch[TerminalSize]] = UNSET
    capabilities: Tolerant[Patch[TerminalCapabilities]] = UNSET


class TerminalOutputChunk(Model, tag_field="sessionUpdate", tag="terminal_output_chunk"):
    """Output to append to a terminal's, encoded in base64 by itself."""

    terminal_id: TerminalId
    data: str

    @classmethod
    def of(cls, terminal_id: TerminalId, output: bytes) -> TerminalOutputChunk:
        return cls(terminal_id, base64.b64encode(output).decode("ascii"))


# A session's activity: it works, it waits for its user, or it is idle; and its background work.


ErrorCode: TypeAlias = Annotated[Int32, "ErrorCode"]
"""JSON-RPC's codes, and ACP's own; `accord.errors` names them."""


class Error(Shape):
    """The error of an answer."""

    code: ErrorCode
    message: str
    data: Tolerant[Json] = None


@unstable
class Usage(Model):
    """The tokens that a session has used so far."""

    total_tokens: Uint64
    input_tokens: Uint64
    output_tokens: Uint64
    thought_tokens: Tolerant[Uint64 | None] = None
    cached_read_tokens: Tolerant[Uint64 | None] = None
    cached_write_tokens: Tolerant[Uint64 | None] = None


class RunningStateUpdate(_InBothVersions, tag_field="state", tag="running"):
    """The session is at work."""


class IdleStateUpdate(_InBothVersions, tag_field="state", tag="idle"):
    """The session is idle.

    `stop_reason` is the reason why the last turn ended, in the words of `StopReason` or `error`; the latter comes with
    `error`.
    """

    stop_reason: Tolerant[str | None] = None
    usage: Unstable[Tolerant[Usage | None]] = None
    error: Tolerant[Error | None] = None


class RequiresActionStateUpdate(_InBothVersions, tag_field="state", tag="requires_action"):
    """The session waits for the user."""


class UnknownStateUpdate(_InBothVersions, tag_field="state", tag="unknown"):
    """The agent does not know the session's state."""


StateUpdate: TypeAlias = Open[RunningStateUpdate | IdleStateUpdate | RequiresActionStateUpdate | UnknownStateUpdate]


class BackgroundToolCall(Model, tag_field="type", tag="tool_call"):
    """A tool call that continues in the background."""

    tool_call_id: ToolCallId


class BackgroundTerminal(Model, tag_field="type", tag="terminal"):
    """A terminal whose command continues in the background."""

    terminal_id: TerminalId


class BackgroundSubagent(Model, tag_field="type", tag="subagent"):
    """A subagent that works in the background."""

    session_id: SessionId


BackgroundWork: TypeAlias = Open[BackgroundToolCall | BackgroundTerminal | BackgroundSubagent]


class SessionStateUpdate(_InBothVersions, tag_field="sessionUpdate", tag="state_update"):
    """A `StateUpdate` as a session update, all of its variants in one."""

    state: Annotated[Literal["running", "idle", "requires_action", "unknown"], second_tag(StateUpdate)]
    stop_reason: Tolerant[str | None] = None
    usage: Unstable[Tolerant[Usage | None]] = None
    error: Tolerant[Error | None] = None
    background: Tolerant[list[BackgroundWork] | None] = None


# Subagents, and messages between sessions.


class SessionCancelCapabilities(Model):
    """Declares that the client may cancel this session on its own."""


class SubagentSessionCapabilities(Model):
    """The actions of a client on a subagent's session."""

    cancel: Tolerant[SessionCancelCapabilities | None] = None


class SubagentUpdate(_UpsertInBothVersions, tag_field="sessionUpdate", tag="subagent_update"):
    """A subagent that this session started, or changes to it."""

    session_id: SessionId
    title: Tolerant[Patch[str]] = UNSET
    description: Tolerant[Patch[str]] = UNSET
    capabilities: Tolerant[Patch[SubagentSessionCapabilities]] = UNSET
    state: Tolerant[Patch[StateUpdate]] = UNSET
    cwd: Patch[AbsolutePath] = UNSET
    additional_directories: Patch[list[AbsolutePath]] = UNSET


class SessionMessage(_UpsertInBothVersions, tag_field="sessionUpdate", tag="session_message"):
    """A message from one session to another, or changes to it."""

    message_id: MessageId
    sender_session_id: Tolerant[Patch[SessionId]] = UNSET
    recipient_session_id: Tolerant[Patch[SessionId]] = UNSET
    sender_message_id: Tolerant[Patch[MessageId]] = UNSET
    recipient_message_id: Tolerant[Patch[MessageId]] = UNSET
    content: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET


@needs("subagents")
class SessionMessageChunk(Model, tag_field="sessionUpdate", tag="session_message_chunk"):
    """Part of a message from one session to another."""

    message_id: MessageId
    content: ContentBlock


# The session: its title, its context, and other information for its user.


class SessionInfoUpdate(_UpsertInBothVersions, tag_field="sessionUpdate", tag="session_info_update"):
    """Changes to the session's information."""

    title: Tolerant[Patch[str]] = UNSET
    updated_at: Tolerant[Patch[str]] = UNSET  # RFC 3339


class Cost(Model):
    """The cost of a session so far."""

    amount: float
    currency: str  # ISO 4217


class UsageUpdate(_InBothVersions, tag_field="sessionUpdate", tag="usage_update"):
    """The used part of the context, and the cost of the session."""

    used: Uint64
    size: Uint64
    cost: Tolerant[Patch[Cost]] = UNSET


NoticeSeverity: TypeAlias = Annotated[str, words("info", "warning", "error")]


@needs("session.notices")
class Notice(Model, tag_field="sessionUpdate", tag="notice"):
    """Information for the user that is not part of the conversation; needs `session.notices`."""

    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: Tolerant[str | None] = None


CompactionId = NewType("CompactionId", str)
CompactionStatus: TypeAlias = Annotated[str, words("in_progress", "completed", "failed", "cancelled")]


class CompactionUpdate(_UpsertInBothVersions, tag_field="sessionUpdate", tag="compaction_update"):
    """The progress of shortening the context; the first update fixes its place in the conversation."""

    compaction_id: CompactionId
    status: Tolerant[Patch[CompactionStatus]] = UNSET  # null: `in_progress`, with which each begins
    summary: Tolerant[Patch[ValidItems[ContentBlock]]] = UNSET
    error: Tolerant[Patch[str]] = UNSET


@needs("session.compaction")
class CompactionSummaryChunk(Model, tag_field="sessionUpdate", tag="compaction_summary_chunk"):
    """Part of the summary that replaces the shortened context."""

    compaction_id: CompactionId
    content: ContentBlock


class ReplayComplete(Model, tag_field="sessionUpdate", tag="replay_complete"):
    """The end of the replay that `session/resume` requested; later updates are live."""


# Cursors: places in a session's history at which it can be forked. Proposal: session-cursors.


CursorId = NewType("CursorId", str)
CursorAnchorPosition: TypeAlias = Annotated[str, words("before", "after")]


@unstable
class CursorMessageAnchor(Model):
    """The message beside which a cursor stands."""

    message_id: MessageId
    position: CursorAnchorPosition


@unstable
class UserMessageAnchor(CursorMessageAnchor, tag_field="type", tag="user_message"):
    """A cursor beside a message of the user."""


@unstable
class AgentMessageAnchor(CursorMessageAnchor, tag_field="type", tag="agent_message"):
    """A cursor beside a message of the agent."""


@unstable
class AgentThoughtAnchor(CursorMessageAnchor, tag_field="type", tag="agent_thought"):
    """A cursor beside a thought of the agent."""


@unstable
class SessionMessageAnchor(CursorMessageAnchor, tag_field="type", tag="session_message"):
    """A cursor beside a message from one session to another."""


@unstable
class CursorToolCallAnchor(Model, tag_field="type", tag="tool_call"):
    """A cursor beside a tool call."""

    tool_call_id: ToolCallId
    position: CursorAnchorPosition


@unstable
class CursorCompactionAnchor(Model, tag_field="type", tag="compaction"):
    """A cursor beside a compaction."""

    compaction_id: CompactionId
    position: CursorAnchorPosition


CursorAnchor: TypeAlias = Open[
    UserMessageAnchor
    | AgentMessageAnchor
    | AgentThoughtAnchor
    | SessionMessageAnchor
    | CursorToolCallAnchor
    | CursorCompactionAnchor
]


@unstable
class CursorForkCapabilities(Model):
    """Declares that the client may fork the session at this cursor."""


@unstable
class CursorCapabilities(Model):
    """The methods that take this cursor now."""

    fork: Tolerant[CursorForkCapabilities | None] = None


@unstable
@needs("session.cursors")
class CursorUpdate(Upsert, tag_field="sessionUpdate", tag="cursor_update"):
    """A cursor, or changes to it; the first update has the anchor, which stays. Needs `session.cursors`."""

    cursor_id: CursorId
    anchor: CursorAnchor | None = None
    capabilities: Tolerant[Patch[CursorCapabilities]] = UNSET


# Prompts that the agent expects next, for the client to offer. Proposal: prompt-suggestions.


@unstable
class PromptSuggestion(Model):
    """A prompt that the user may want to send next, ready to be sent."""

    prompt: list[ContentBlock]

    @classmethod
    def of(cls, *content: str | ContentBlock) -> PromptSuggestion:
        return cls([as_block(block) for block in content])


@unstable
@needs("session.prompt_suggestions")
class PromptSuggestionsUpdate(Model, tag_field="sessionUpdate", tag="prompt_suggestions_update"):
    """The prompts suggested now, the likeliest first; they replace the earlier list."""

    suggestions: ValidItems[PromptSuggestion]


Update: TypeAlias = Open[
    UserMessageChunk
    | UserMessage
    | AgentMessageChunk
    | AgentMessage
    | AgentThoughtChunk
    | AgentThought
    | SessionStateUpdate
    | ToolCallProgress
    | ToolCallContentChunk
    | TerminalUpdate
    | TerminalOutputChunk
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | ConfigOptionUpdate
    | CurrentModeUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
    | ReplayComplete
    | CursorUpdate
    | PromptSuggestionsUpdate
]
"""An update in its public form."""
