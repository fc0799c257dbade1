"""Next edit suggestions, and the documents they are about: proposed (next-edit-suggestions).

They have their own sessions, beside the chat sessions. They are no longer in the pinned schema files, but the
TypeScript SDK has kept them unchanged, and its validators show which fields are tolerant; see `legacy`. Their
capabilities are in `nes_capabilities`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Notification, Open, Request, Tolerant, Uint32, unstable, words
from accord.schema.shared_updates import SessionId


class Position(Model):
    """A place in a document: line and character, both from zero, in the negotiated encoding."""

    line: Uint32
    character: Uint32


class Range(Model):
    """The text between two places in a document."""

    start: Position
    end: Position


# Sessions


@unstable
class NesRepository(Model):
    """The repository of a workspace."""

    name: str
    owner: str
    remote_url: str


@unstable
class WorkspaceFolder(Model):
    """A folder of the workspace."""

    uri: str
    name: str


@unstable
class StartNesResponse(Model):
    """The result of `nes/start`: the id of the suggestion session."""

    session_id: SessionId


class StartNesRequest(Request[StartNesResponse], method="nes/start", unstable=True, needs="nes"):
    """Start a suggestion session for a workspace."""

    workspace_uri: Tolerant[str | None] = None
    workspace_folders: list[WorkspaceFolder] | None = None
    repository: Tolerant[NesRepository | None] = None


@unstable
class CloseNesResponse(Model):
    """The result of `nes/close`: the suggestion session is closed."""


class CloseNesRequest(Request[CloseNesResponse], method="nes/close", unstable=True):
    """Close a suggestion session and stop its work."""

    session_id: SessionId


# Documents


class DidOpenDocumentNotification(Notification, method="document/didOpen", unstable=True):
    """Tells the agent that a document was opened."""

    session_id: SessionId
    uri: str
    language_id: str
    version: int
    text: str


@unstable
class TextDocumentContentChangeEvent(Model):
    """New text for a range, or for the whole document."""

    text: str
    range: Range | None = None


class DidChangeDocumentNotification(Notification, method="document/didChange", unstable=True):
    """Tells the agent that a document was edited."""

    session_id: SessionId
    uri: str
    version: int
    content_changes: list[TextDocumentContentChangeEvent]


class DidCloseDocumentNotification(Notification, method="document/didClose", unstable=True):
    """Tells the agent that a document was closed."""

    session_id: SessionId
    uri: str


class DidSaveDocumentNotification(Notification, method="document/didSave", unstable=True):
    """Tells the agent that a document was saved."""

    session_id: SessionId
    uri: str


class DidFocusDocumentNotification(Notification, method="document/didFocus", unstable=True):
    """Notifies the agent that a document got the focus."""

    session_id: SessionId
    uri: str
    version: int
    position: Position
    visible_range: Range


# Suggestions

NesTriggerKind: TypeAlias = Annotated[str, words("automatic", "diagnostic", "manual")]
NesDiagnosticSeverity: TypeAlias = Annotated[str, words("error", "warning", "information", "hint")]
NesRejectReason: TypeAlias = Annotated[str, words("rejected", "ignored", "replaced", "cancelled")]


@unstable
class NesRecentFile(Model):
    """A recently used file, with its text."""

    uri: str
    language_id: str
    text: str


@unstable
class NesExcerpt(Model):
    """Some lines of a file."""

    start_line: Uint32
    end_line: Uint32
    text: str


@unstable
class NesRelatedSnippet(Model):
    """Excerpts of a related file."""

    uri: str
    excerpts: list[NesExcerpt]


@unstable
class NesEditHistoryEntry(Model):
    """An edit, as a diff."""

    uri: str
    diff: str


@unstable
class NesUserAction(Model):
    """A recent action of the user."""

    action: str
    uri: str
    position: Position
    timestamp_ms: int


@unstable
class NesOpenFile(Model):
    """A file that is open."""

    uri: str
    language_id: str
    visible_range: Tolerant[Range | None] = None
    last_focused_ms: Tolerant[int | None] = None


@unstable
class NesDiagnostic(Model):
    """An error or a warning."""

    uri: str
    range: Range
    severity: NesDiagnosticSeverity
    message: str


@unstable
class NesSuggestContext(Model):
    """The context for a suggestion that the agent asked for."""

    recent_files: list[NesRecentFile] | None = None
    related_snippets: list[NesRelatedSnippet] | None = None
    edit_history: list[NesEditHistoryEntry] | None = None
    user_actions: list[NesUserAction] | None = None
    open_files: list[NesOpenFile] | None = None
    diagnostics: list[NesDiagnostic] | None = None


@unstable
class NesTextEdit(Model):
    """New text for a range."""

    range: Range
    new_text: str


@unstable
class NesEditSuggestion(Model, tag_field="kind", tag="edit"):
    """A suggestion to change a document."""

    id: str
    uri: str
    edits: list[NesTextEdit]
    cursor_position: Tolerant[Position | None] = None


@unstable
class NesJumpSuggestion(Model, tag_field="kind", tag="jump"):
    """A suggestion to go to another place."""

    id: str
    uri: str
    position: Position


@unstable
class NesRenameSuggestion(Model, tag_field="kind", tag="rename"):
    """A suggestion to rename a symbol."""

    id: str
    uri: str
    position: Position
    new_name: str


@unstable
class NesSearchAndReplaceSuggestion(Model, tag_field="kind", tag="searchAndReplace"):
    """A suggestion to search and replace in a file or folder."""

    id: str
    uri: str
    search: str
    replace: str
    is_regex: bool | None = None


NesSuggestion: TypeAlias = Open[
    NesEditSuggestion | NesJumpSuggestion | NesRenameSuggestion | NesSearchAndReplaceSuggestion
]


@unstable
class SuggestNesResponse(Model):
    """The result of `nes/suggest`: suggestions, best first."""

    suggestions: list[NesSuggestion]


class SuggestNesRequest(Request[SuggestNesResponse], method="nes/suggest", unstable=True):
    """Ask for suggestions of what the user might do next."""

    session_id: SessionId
    uri: str
    version: int
    position: Position
    trigger_kind: NesTriggerKind
    selection: Range | None = None
    context: NesSuggestContext | None = None


class AcceptNesNotification(Notification, method="nes/accept", unstable=True):
    """Tells the agent that the user accepted a suggestion."""

    session_id: SessionId
    id: str


class RejectNesNotification(Notification, method="nes/reject", unstable=True):
    """Tells the agent that the user rejected a suggestion."""

    session_id: SessionId
    id: str
    reason: Tolerant[NesRejectReason | None] = None
