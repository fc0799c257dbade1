"""Next edit suggestions, and the documents they are about: proposed (next-edit-suggestions).

They have sessions of their own, beside the chat sessions. No longer in the pinned schema files, but kept as it was by
the TypeScript SDK, whose validators say which fields are tolerant; see `legacy`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Notification, Open, Request, Tolerant, Uint32, words
from accord.schema.v1.session import SessionId

PositionEncodingKind: TypeAlias = Annotated[str, words("utf-16", "utf-32", "utf-8")]
TextDocumentSyncKind: TypeAlias = Annotated[str, words("full", "incremental")]


class Position(Model):
    """A place in a document: both numbers count from zero, characters in the negotiated encoding."""

    line: Uint32
    character: Uint32


class Range(Model):
    """From one place up to another."""

    start: Position
    end: Position


# What an agent wants to know


class NesDocumentDidOpenCapabilities(Model, unstable=True):
    """Tell when a document opens."""


class NesDocumentDidChangeCapabilities(Model, unstable=True):
    """Tell what changes in a document, whole or in pieces."""

    sync_kind: TextDocumentSyncKind


class NesDocumentDidCloseCapabilities(Model, unstable=True):
    """Tell when a document closes."""


class NesDocumentDidSaveCapabilities(Model, unstable=True):
    """Tell when a document is saved."""


class NesDocumentDidFocusCapabilities(Model, unstable=True):
    """Tell when a document gets the focus."""


class NesDocumentEventCapabilities(Model, unstable=True):
    """The document events that the agent wants."""

    did_open: Tolerant[NesDocumentDidOpenCapabilities | None] = None
    did_change: Tolerant[NesDocumentDidChangeCapabilities | None] = None
    did_close: Tolerant[NesDocumentDidCloseCapabilities | None] = None
    did_save: Tolerant[NesDocumentDidSaveCapabilities | None] = None
    did_focus: Tolerant[NesDocumentDidFocusCapabilities | None] = None


class NesEventCapabilities(Model, unstable=True):
    """The events that the agent wants."""

    document: Tolerant[NesDocumentEventCapabilities | None] = None


class NesRecentFilesCapabilities(Model, unstable=True):
    """Send recently used files along."""

    max_count: Tolerant[Uint32 | None] = None


class NesRelatedSnippetsCapabilities(Model, unstable=True):
    """Send related pieces of code along."""


class NesEditHistoryCapabilities(Model, unstable=True):
    """Send the last edits along."""

    max_count: Tolerant[Uint32 | None] = None


class NesUserActionsCapabilities(Model, unstable=True):
    """Send what the user did along."""

    max_count: Tolerant[Uint32 | None] = None


class NesOpenFilesCapabilities(Model, unstable=True):
    """Send the list of open files along."""


class NesDiagnosticsCapabilities(Model, unstable=True):
    """Send errors and warnings along."""


class NesContextCapabilities(Model, unstable=True):
    """What the agent wants to see with each request."""

    recent_files: Tolerant[NesRecentFilesCapabilities | None] = None
    related_snippets: Tolerant[NesRelatedSnippetsCapabilities | None] = None
    edit_history: Tolerant[NesEditHistoryCapabilities | None] = None
    user_actions: Tolerant[NesUserActionsCapabilities | None] = None
    open_files: Tolerant[NesOpenFilesCapabilities | None] = None
    diagnostics: Tolerant[NesDiagnosticsCapabilities | None] = None


class NesCapabilities(Model, unstable=True):
    """The agent suggests edits."""

    events: Tolerant[NesEventCapabilities | None] = None
    context: Tolerant[NesContextCapabilities | None] = None


# The kinds of suggestion that a client can show


class NesJumpCapabilities(Model, unstable=True):
    """The client can offer a jump."""


class NesRenameCapabilities(Model, unstable=True):
    """The client can offer a rename."""


class NesSearchAndReplaceCapabilities(Model, unstable=True):
    """The client can offer a search and replace."""


class ClientNesCapabilities(Model, unstable=True):
    """What the client can show besides edits."""

    jump: Tolerant[NesJumpCapabilities | None] = None
    rename: Tolerant[NesRenameCapabilities | None] = None
    search_and_replace: Tolerant[NesSearchAndReplaceCapabilities | None] = None


# Sessions


class NesRepository(Model, unstable=True):
    """The repository that the workspace is."""

    name: str
    owner: str
    remote_url: str


class WorkspaceFolder(Model, unstable=True):
    """A folder of the workspace."""

    uri: str
    name: str


class StartNesResponse(Model, unstable=True):
    """The suggestion session exists."""

    session_id: SessionId


class StartNesRequest(Request[StartNesResponse], method="nes/start", unstable=True):
    """Start a suggestion session for a workspace."""

    workspace_uri: Tolerant[str | None] = None
    workspace_folders: list[WorkspaceFolder] | None = None
    repository: Tolerant[NesRepository | None] = None


class CloseNesResponse(Model, unstable=True):
    """The suggestion session is over."""


class CloseNesRequest(Request[CloseNesResponse], method="nes/close", unstable=True):
    """Stop all work of a suggestion session."""

    session_id: SessionId


# Documents


class DidOpenDocumentNotification(Notification, method="document/didOpen", unstable=True):
    """A document was opened."""

    session_id: SessionId
    uri: str
    language_id: str
    version: int
    text: str


class TextDocumentContentChangeEvent(Model, unstable=True):
    """New text for a range, or for the whole document."""

    text: str
    range: Range | None = None


class DidChangeDocumentNotification(Notification, method="document/didChange", unstable=True):
    """A document was edited."""

    session_id: SessionId
    uri: str
    version: int
    content_changes: list[TextDocumentContentChangeEvent]


class DidCloseDocumentNotification(Notification, method="document/didClose", unstable=True):
    """A document was closed."""

    session_id: SessionId
    uri: str


class DidSaveDocumentNotification(Notification, method="document/didSave", unstable=True):
    """A document was saved."""

    session_id: SessionId
    uri: str


class DidFocusDocumentNotification(Notification, method="document/didFocus", unstable=True):
    """The user turned to a document."""

    session_id: SessionId
    uri: str
    version: int
    position: Position
    visible_range: Range


# Suggestions

NesTriggerKind: TypeAlias = Annotated[str, words("automatic", "diagnostic", "manual")]
NesDiagnosticSeverity: TypeAlias = Annotated[str, words("error", "warning", "information", "hint")]
NesRejectReason: TypeAlias = Annotated[str, words("rejected", "ignored", "replaced", "cancelled")]


class NesRecentFile(Model, unstable=True):
    """A file used lately, with its text."""

    uri: str
    language_id: str
    text: str


class NesExcerpt(Model, unstable=True):
    """Some lines of a file."""

    start_line: Uint32
    end_line: Uint32
    text: str


class NesRelatedSnippet(Model, unstable=True):
    """Pieces of a related file."""

    uri: str
    excerpts: list[NesExcerpt]


class NesEditHistoryEntry(Model, unstable=True):
    """An edit, as a diff."""

    uri: str
    diff: str


class NesUserAction(Model, unstable=True):
    """Something the user did."""

    action: str
    uri: str
    position: Position
    timestamp_ms: int


class NesOpenFile(Model, unstable=True):
    """A file that is open."""

    uri: str
    language_id: str
    visible_range: Tolerant[Range | None] = None
    last_focused_ms: Tolerant[int | None] = None


class NesDiagnostic(Model, unstable=True):
    """An error or a warning."""

    uri: str
    range: Range
    severity: NesDiagnosticSeverity
    message: str


class NesSuggestContext(Model, unstable=True):
    """What the agent asked to see."""

    recent_files: list[NesRecentFile] | None = None
    related_snippets: list[NesRelatedSnippet] | None = None
    edit_history: list[NesEditHistoryEntry] | None = None
    user_actions: list[NesUserAction] | None = None
    open_files: list[NesOpenFile] | None = None
    diagnostics: list[NesDiagnostic] | None = None


class NesTextEdit(Model, unstable=True):
    """New text for a range."""

    range: Range
    new_text: str


class NesEditSuggestion(Model, tag_field="kind", tag="edit", unstable=True):
    """Change a document."""

    id: str
    uri: str
    edits: list[NesTextEdit]
    cursor_position: Tolerant[Position | None] = None


class NesJumpSuggestion(Model, tag_field="kind", tag="jump", unstable=True):
    """Go somewhere."""

    id: str
    uri: str
    position: Position


class NesRenameSuggestion(Model, tag_field="kind", tag="rename", unstable=True):
    """Rename a symbol."""

    id: str
    uri: str
    position: Position
    new_name: str


class NesSearchAndReplaceSuggestion(Model, tag_field="kind", tag="searchAndReplace", unstable=True):
    """Search and replace in a file or folder."""

    id: str
    uri: str
    search: str
    replace: str
    is_regex: bool | None = None


NesSuggestion: TypeAlias = Open[
    NesEditSuggestion | NesJumpSuggestion | NesRenameSuggestion | NesSearchAndReplaceSuggestion
]


class SuggestNesResponse(Model, unstable=True):
    """The suggestions, best first."""

    suggestions: list[NesSuggestion]


class SuggestNesRequest(Request[SuggestNesResponse], method="nes/suggest", unstable=True):
    """What might the user want to do next?"""

    session_id: SessionId
    uri: str
    version: int
    position: Position
    trigger_kind: NesTriggerKind
    selection: Range | None = None
    context: NesSuggestContext | None = None


class AcceptNesNotification(Notification, method="nes/accept", unstable=True):
    """The user took a suggestion."""

    session_id: SessionId
    id: str


class RejectNesNotification(Notification, method="nes/reject", unstable=True):
    """The user did not take a suggestion."""

    session_id: SessionId
    id: str
    reason: Tolerant[NesRejectReason | None] = None
