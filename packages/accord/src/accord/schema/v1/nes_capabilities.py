"""What agents and clients declare of next edit suggestions: every `initialize` has room for it, see `nes`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Tolerant, Uint32, unstable, words

PositionEncodingKind: TypeAlias = Annotated[str, words("utf-16", "utf-32", "utf-8")]
TextDocumentSyncKind: TypeAlias = Annotated[str, words("full", "incremental")]


# What an agent wants to know


@unstable
class NesDocumentDidOpenCapabilities(Model):
    """Tell when a document opens."""


@unstable
class NesDocumentDidChangeCapabilities(Model):
    """Tell what changes in a document, whole or in pieces."""

    sync_kind: TextDocumentSyncKind


@unstable
class NesDocumentDidCloseCapabilities(Model):
    """Tell when a document closes."""


@unstable
class NesDocumentDidSaveCapabilities(Model):
    """Tell when a document is saved."""


@unstable
class NesDocumentDidFocusCapabilities(Model):
    """Tell when a document gets the focus."""


@unstable
class NesDocumentEventCapabilities(Model):
    """The document events that the agent wants."""

    did_open: Tolerant[NesDocumentDidOpenCapabilities | None] = None
    did_change: Tolerant[NesDocumentDidChangeCapabilities | None] = None
    did_close: Tolerant[NesDocumentDidCloseCapabilities | None] = None
    did_save: Tolerant[NesDocumentDidSaveCapabilities | None] = None
    did_focus: Tolerant[NesDocumentDidFocusCapabilities | None] = None


@unstable
class NesEventCapabilities(Model):
    """The events that the agent wants."""

    document: Tolerant[NesDocumentEventCapabilities | None] = None


@unstable
class NesRecentFilesCapabilities(Model):
    """Send recently used files along."""

    max_count: Tolerant[Uint32 | None] = None


@unstable
class NesRelatedSnippetsCapabilities(Model):
    """Send related pieces of code along."""


@unstable
class NesEditHistoryCapabilities(Model):
    """Send the last edits along."""

    max_count: Tolerant[Uint32 | None] = None


@unstable
class NesUserActionsCapabilities(Model):
    """Send what the user did along."""

    max_count: Tolerant[Uint32 | None] = None


@unstable
class NesOpenFilesCapabilities(Model):
    """Send the list of open files along."""


@unstable
class NesDiagnosticsCapabilities(Model):
    """Send errors and warnings along."""


@unstable
class NesContextCapabilities(Model):
    """What the agent wants to see with each request."""

    recent_files: Tolerant[NesRecentFilesCapabilities | None] = None
    related_snippets: Tolerant[NesRelatedSnippetsCapabilities | None] = None
    edit_history: Tolerant[NesEditHistoryCapabilities | None] = None
    user_actions: Tolerant[NesUserActionsCapabilities | None] = None
    open_files: Tolerant[NesOpenFilesCapabilities | None] = None
    diagnostics: Tolerant[NesDiagnosticsCapabilities | None] = None


@unstable
class NesCapabilities(Model):
    """The agent suggests edits."""

    events: Tolerant[NesEventCapabilities | None] = None
    context: Tolerant[NesContextCapabilities | None] = None


# The kinds of suggestion that a client can show


@unstable
class NesJumpCapabilities(Model):
    """The client can offer a jump."""


@unstable
class NesRenameCapabilities(Model):
    """The client can offer a rename."""


@unstable
class NesSearchAndReplaceCapabilities(Model):
    """The client can offer a search and replace."""


@unstable
class ClientNesCapabilities(Model):
    """What the client can show besides edits."""

    jump: Tolerant[NesJumpCapabilities | None] = None
    rename: Tolerant[NesRenameCapabilities | None] = None
    search_and_replace: Tolerant[NesSearchAndReplaceCapabilities | None] = None
