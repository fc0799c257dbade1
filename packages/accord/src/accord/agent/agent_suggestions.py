"""Next edit suggestions on the agent's side: what an author registers, the mirrors of documents, and the messages.

A document is identified by its session and its URI, however spelled. A change that cannot be applied leaves a wrong
mirror, so the document is forgotten: its client opens it again, or sends it whole.

Suggestion sessions are not chat sessions: they have their own ids, and none of the methods `session/...` works on them.
A request of one ends when the client cancels it or closes its session; a later request does not end an earlier one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from accord._internal.tasks import finished, in_thread
from accord.documents.text_document import (
    DEFAULT,
    Edit,
    Encoding,
    TextDocument,
    addressable,
    chosen,
    key_of,
    line_edits,
    uri_of,
)
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import RequestError
from accord.mistakes import registered_once, wrong_type
from accord.paths import path_of_uri
from accord.schema import v1
from accord.schema.base import JsonObject, Unknown
from accord.schema.sendable import check_sendable, with_meta
from accord.schema.v1 import NesContextCapabilities, SessionId
from accord.schema.v1_nes import NesTriggerKind

Wish = Literal["recent_files", "related_snippets", "edit_history", "user_actions", "open_files", "diagnostics"]
"""The context that a client may send along with a request for suggestions."""

WISHES: tuple[str, ...] = get_args(Wish)
_COUNTED = ("recent_files", "edit_history", "user_actions")
"""The kinds of context for which a maximum may be set."""

Suggested: TypeAlias = "Sequence[v1.NesSuggestion | None] | None"
"""What a function for suggestions returns: suggestions, the best first; None among them is skipped."""

SuggestFunction: TypeAlias = "Callable[[SuggestionRequest], Suggested | Awaitable[Suggested]]"
OutcomeFunction: TypeAlias = "Callable[[v1.NesSuggestion, str], object]"
SavedFunction: TypeAlias = "Callable[[MirroredDocument], object]"
FocusedFunction: TypeAlias = "Callable[[MirroredDocument, int], object]"


class SuggestionFunctions(msgspec.Struct):
    """An author's functions for suggestions; without the first of them, nothing is declared."""

    suggest: Callable[..., Any] | None = None
    wishes: dict[str, int | None] = {}
    """The context that the client is asked to send, and how many of each at most."""
    outcome: Callable[..., Any] | None = None
    """Called with a suggestion and its outcome."""
    saved: Callable[..., Any] | None = None
    focused: Callable[..., Any] | None = None

    def register(self, function: Callable[..., Any], context: Collection[str] | Mapping[str, int | None]) -> None:
        """Register the function that suggests; raises for a second one, and for an unknown wish."""
        registered_once("@agent.on_suggest", self.suggest, function)
        self.wishes = checked_wishes(context)
        self.suggest = in_thread(function)

    def declared(self, capabilities: v1.AgentCapabilities, client: v1.ClientCapabilities) -> v1.AgentCapabilities:
        """Return these capabilities with suggestions, and the position encoding for this client."""
        if self.suggest is None:
            return capabilities
        # next-edit-suggestions: the agent chooses one of the encodings that the client offers; without one, utf-16.
        encoding = chosen(client.position_encodings or ())
        return msgspec.structs.replace(capabilities, nes=self._capabilities(), position_encoding=encoding)

    def _capabilities(self) -> v1.NesCapabilities:
        documents = v1.NesDocumentEventCapabilities(
            did_open=v1.NesDocumentDidOpenCapabilities(),
            did_change=v1.NesDocumentDidChangeCapabilities("incremental"),
            did_close=v1.NesDocumentDidCloseCapabilities(),
            did_save=None if self.saved is None else v1.NesDocumentDidSaveCapabilities(),
            did_focus=None if self.focused is None else v1.NesDocumentDidFocusCapabilities(),
        )
        events = v1.NesEventCapabilities(documents)
        return v1.NesCapabilities(events, _context(self.wishes) if self.wishes else None)


def checked_wishes(context: Collection[str] | Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the requested context by name, each with its maximum; raises TypeError or ValueError."""
    if isinstance(context, str):
        raise wrong_type(
            "@agent.on_suggest(context=...)", "a sequence of names, or a dict from names to counts", context
        )
    counted = cast("Mapping[str, int | None]", context) if isinstance(context, Mapping) else dict.fromkeys(context)
    wishes = dict(counted)
    for name, most in wishes.items():
        if name not in WISHES:
            raise ValueError(f"context must be of {', '.join(WISHES)}; got {name!r}")
        if most is not None and (name not in _COUNTED or type(most) is not int or most < 1):
            raise ValueError(
                f"a count in context is a number from 1 on, for {', '.join(_COUNTED)}; got {name}={most!r}"
            )
    return wishes


def _context(wishes: Mapping[str, int | None]) -> v1.NesContextCapabilities:
    made: dict[str, Any] = {}
    for field in msgspec.structs.fields(NesContextCapabilities):
        if field.name in wishes:
            cls = _CAPABILITIES[field.name]
            most = wishes[field.name]
            made[field.name] = cls() if most is None else cls(max_count=most)
    return v1.NesContextCapabilities(**made)


_CAPABILITIES: dict[str, Any] = {
    "recent_files": v1.NesRecentFilesCapabilities,
    "related_snippets": v1.NesRelatedSnippetsCapabilities,
    "edit_history": v1.NesEditHistoryCapabilities,
    "user_actions": v1.NesUserActionsCapabilities,
    "open_files": v1.NesOpenFilesCapabilities,
    "diagnostics": v1.NesDiagnosticsCapabilities,
}


# The documents that are open in the client


log = logging.getLogger("accord")


class MirroredDocument:
    """A document that is open in the client: its text, version and name."""

    def __init__(self, uri: str, language: str, version: int, text: TextDocument) -> None:
        self.uri = uri
        """The document's URI, as the client writes it."""
        self.language = language
        """The language, such as `python`, as the client names it; empty if it did not say."""
        self.version = version
        """The number of the text: it grows with each change."""
        self._text = text

    def __repr__(self) -> str:
        return f"MirroredDocument({self.uri!r}, version={self.version})"

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text.text

    @property
    def lines(self) -> list[str]:
        """The lines, without their endings."""
        return self._text.lines

    @property
    def path(self) -> Path | None:
        """The path of the file; None for a document that is not a file."""
        return path_of_uri(self.uri)


def positions_of(document: MirroredDocument) -> TextDocument:
    """Return the document's text with its positions."""
    return document._text  # pyright: ignore[reportPrivateUsage]


class Mirrors:
    """The open documents of one suggestion session."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding: Encoding = encoding
        self._documents: dict[str, MirroredDocument] = {}

    def find(self, uri: str) -> MirroredDocument | None:
        """Return the document with this URI as a snapshot; None if it is not open."""
        return self._documents.get(key_of(uri))

    def opened(self, said: v1.DidOpenDocumentNotification) -> None:
        """Mirror a document that was opened."""
        self._put(said.uri, said.language_id, said.version, said.text)

    def changed(self, said: v1.DidChangeDocumentNotification) -> None:
        """Apply changes; if that is impossible, forget the document."""
        if (problem := self._apply(said)) is not None:
            self._documents.pop(key_of(said.uri), None)
            log.warning("a document is no longer mirrored: %s", problem)

    def closed(self, said: v1.DidCloseDocumentNotification) -> None:
        """Forget a document that was closed."""
        self._documents.pop(key_of(said.uri), None)

    def _put(self, uri: str, language: str, version: int, text: str) -> None:
        document = MirroredDocument(uri, language, version, TextDocument(text, self._encoding))
        self._documents[key_of(uri)] = document

    def _apply(self, said: v1.DidChangeDocumentNotification) -> str | None:
        """Apply changes; returns why that is impossible, or None."""
        before = self.find(said.uri)
        # the whole text: earlier changes do not matter
        if said.content_changes and said.content_changes[0].range is None:
            text = TextDocument("", self._encoding)
        elif before is None:
            return "a range of it changed, and it is not open"
        elif said.version <= before.version:
            return f"version {said.version} came after version {before.version}"
        else:
            text = positions_of(before).copy()
        try:
            text.apply(said.content_changes)
        except ValueError as error:
            return str(error)
        language = "" if before is None else before.language
        self._documents[key_of(said.uri)] = MirroredDocument(said.uri, language, said.version, text)
        return None


SHOWN_BY: dict[type, str] = {
    v1.NesJumpSuggestion: "jump",
    v1.NesRenameSuggestion: "rename",
    v1.NesSearchAndReplaceSuggestion: "search_and_replace",
}
"""The suggestions that only some clients show, by their capability; every client shows edits."""


class SuggestionRequest:
    """A request for suggestions: the document as the user sees it, the cursor, and methods that make suggestions.

    Offsets are indexes of `document.text`, whatever unit the client uses. The document does not change while you work.
    """

    def __init__(
        self,
        asked: v1.SuggestNesRequest,
        document: MirroredDocument,
        folder: Path | None,
        client: v1.ClientNesCapabilities,
        new_id: Callable[[], str],
    ) -> None:
        self.document = document
        """The document: `text`, `lines`, `language`, `version`, `uri` and `path`."""
        self.offset: int = positions_of(document).offset(asked.position)
        """The place of the cursor."""
        self.selection: tuple[int, int] | None = (
            None if asked.selection is None else positions_of(document).offsets(asked.selection)
        )
        """Where the selection starts and ends; None if nothing is selected."""
        self.trigger: NesTriggerKind = asked.trigger_kind
        """Why the client asks: `automatic` (the user types or moves), `diagnostic` or `manual`."""
        self.context: v1.NesSuggestContext = asked.context or v1.NesSuggestContext()
        """The context that the client sent; only what `@agent.on_suggest(context=...)` requested."""
        self.meta: dict[str, object] = asked.meta or {}
        """The `_meta` of the request."""
        self._folder = folder
        self._client = client
        self._new_id = new_id

    def __repr__(self) -> str:
        return f"SuggestionRequest({self.document.uri!r}, offset={self.offset})"

    def shows(self, kind: str) -> bool:
        """Whether the client shows suggestions of this kind: `edit`, `jump`, `rename` or `search_and_replace`."""
        if kind not in ("edit", *SHOWN_BY.values()):
            raise ValueError(f"kind must be edit, {', '.join(SHOWN_BY.values())}; got {kind!r}")
        return kind == "edit" or getattr(self._client, kind) is not None

    def edit(
        self, new_text: str, *, cursor: int | None = None, meta: JsonObject | None = None
    ) -> v1.NesEditSuggestion | None:
        """Suggest that the document become this text, with the smallest edits of its lines; None if it already is.

        `cursor` is the offset in the new text where the cursor goes, `meta` the suggestion's `_meta`.
        """
        return self._edit(line_edits(self.document.text, new_text), new_text, cursor, meta)

    def replace(
        self, start: int, end: int, text: str, *, meta: JsonObject | None = None
    ) -> v1.NesEditSuggestion | None:
        """Suggest this text in place of the text between two offsets; None if it is the same."""
        old = self.document.text
        if not 0 <= start <= end <= len(old):
            raise ValueError(f"start and end must be in order, from 0 to {len(old)}; got {start} and {end}")
        if old[start:end] == text:
            return None
        return self._edit([addressable(old, Edit(start, end, text))], "", None, meta)

    def jump(
        self, file: str | Path | None = None, *, line: int, meta: JsonObject | None = None
    ) -> v1.NesJumpSuggestion | None:
        """Suggest jumping to a line (from 1) of this document or of another file; None if the client does not support
        it.
        """
        if line < 1:
            raise ValueError(f"line must be at least 1, got {line}")
        if not self.shows("jump"):
            return None
        jump = v1.NesJumpSuggestion(self._new_id(), self._uri(file), v1.Position(line - 1, 0))
        return with_meta("request.jump", jump, meta)

    def rename(self, offset: int, new_name: str, *, meta: JsonObject | None = None) -> v1.NesRenameSuggestion | None:
        """Suggest another name for the symbol at this offset; None if the client does not support it."""
        if not self.shows("rename"):
            return None
        position = positions_of(self.document).position(offset)
        rename = v1.NesRenameSuggestion(self._new_id(), self.document.uri, position, new_name)
        return with_meta("request.rename", rename, meta)

    def search(
        self,
        search: str,
        replace: str,
        *,
        file: str | Path | None = None,
        is_regex: bool = False,
        meta: JsonObject | None = None,
    ) -> v1.NesSearchAndReplaceSuggestion | None:
        """Suggest a search and replace in this document, in a file or in a folder; None if the client does not support
        it.
        """
        if not self.shows("search_and_replace"):
            return None
        found = v1.NesSearchAndReplaceSuggestion(self._new_id(), self._uri(file), search, replace, is_regex or None)
        return with_meta("request.search", found, meta)

    def _edit(
        self, edits: list[Edit], new_text: str, cursor: int | None, meta: JsonObject | None
    ) -> v1.NesEditSuggestion | None:
        if not edits:
            return None
        text = positions_of(self.document)
        wire_edits = [v1.NesTextEdit(text.range(edit.start, edit.end), edit.text) for edit in edits]
        position = None if cursor is None else TextDocument(new_text, text.encoding).position(cursor)
        edit = v1.NesEditSuggestion(self._new_id(), self.document.uri, wire_edits, position)
        return with_meta("request.edit", edit, meta)

    def _uri(self, file: str | Path | None) -> str:
        return self.document.uri if file is None else uri_of(file, self._folder)


def is_shown(suggestion: v1.NesSuggestion, client: v1.ClientNesCapabilities) -> bool:
    """Whether a client shows this suggestion."""
    if isinstance(suggestion, Unknown):
        return False
    kind = SHOWN_BY.get(suggestion.__class__)
    return kind is None or getattr(client, kind) is not None


# The sessions of a connection


REMEMBERED = 100
"""How many of a session's latest suggestions are remembered until their outcome is known."""


class MirroredSession:
    """One suggestion session, from `nes/start` to `nes/close`."""

    def __init__(self, folder: Path | None, encoding: Encoding) -> None:
        self.folder = folder
        self.documents = Mirrors(encoding)
        self.open: set[asyncio.Task[v1.SuggestNesResponse]] = set()
        """The requests without an answer so far."""
        self.is_closed = False
        self._shown: dict[str, tuple[v1.NesSuggestion, str]] = {}
        self._rejected: set[str] = set()

    def remember(self, suggestion: v1.NesSuggestion, essence: str) -> None:
        """Remember a sent suggestion until the client reports its outcome."""
        self._shown[_id_of(suggestion)] = (suggestion, essence)
        if len(self._shown) > REMEMBERED:
            del self._shown[next(iter(self._shown))]

    def settled(self, suggestion_id: str, *, rejected: bool) -> v1.NesSuggestion | None:
        """Return the suggestion with this id, on which the user has decided; None if it is unknown."""
        suggestion, essence = self._shown.pop(suggestion_id, (None, ""))
        if suggestion is not None and rejected and len(self._rejected) < REMEMBERED:
            self._rejected.add(essence)
        return suggestion

    def was_rejected(self, essence: str) -> bool:
        """Whether the user has rejected the same suggestion before."""
        return essence in self._rejected

    def close(self) -> None:
        """End the open requests."""
        self.is_closed = True
        for task in self.open:
            task.cancel()


class SuggestionSessions:
    """All suggestion sessions of one connection, and the handlers of their messages."""

    def __init__(
        self, functions: SuggestionFunctions, peer: Peer, require_login: Callable[[], Awaitable[None]]
    ) -> None:
        self._functions = functions
        self._peer = peer
        self._require_login = require_login
        self._sessions: dict[str, MirroredSession] = {}
        self._numbers = count(1)
        self._ids = count(1)
        self._has_complained = False

    def register(self, handlers: Handlers) -> None:
        """Handle the messages of suggestion sessions."""
        handlers.on(v1.StartNesRequest)(self._start)
        handlers.on(v1.SuggestNesRequest)(self._suggest)
        handlers.on(v1.CloseNesRequest)(self._close)
        handlers.on(v1.AcceptNesNotification)(self._accepted)
        handlers.on(v1.RejectNesNotification)(self._rejected)
        handlers.on(v1.DidOpenDocumentNotification)(self._opened)
        handlers.on(v1.DidChangeDocumentNotification)(self._changed)
        handlers.on(v1.DidCloseDocumentNotification)(self._document_closed)
        handlers.on(v1.DidSaveDocumentNotification)(self._saved)
        handlers.on(v1.DidFocusDocumentNotification)(self._focused)

    # Sessions

    async def _start(self, request: v1.StartNesRequest) -> v1.StartNesResponse:
        await self._require_login()
        session_id = SessionId(f"nes-{next(self._numbers)}")
        folder = None if request.workspace_uri is None else path_of_uri(request.workspace_uri)
        self._sessions[session_id] = MirroredSession(folder, self._encoding())
        return v1.StartNesResponse(session_id)

    def _close(self, request: v1.CloseNesRequest) -> None:
        self._session(request.session_id).close()
        del self._sessions[request.session_id]

    def _session(self, session_id: str) -> MirroredSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError.not_found("Unknown suggestion session", sessionId=session_id)
        return session

    def _encoding(self) -> Encoding:
        return chosen(self._declared().position_encodings or ()) or DEFAULT

    def _declared(self) -> v1.ClientCapabilities:
        declared = self._peer.capabilities.declared
        return declared if isinstance(declared, v1.ClientCapabilities) else v1.ClientCapabilities()

    def _shown(self) -> v1.ClientNesCapabilities:
        return self._declared().nes or v1.ClientNesCapabilities()

    # Documents

    def _opened(self, said: v1.DidOpenDocumentNotification) -> None:
        if (session := self._sessions.get(said.session_id)) is not None:
            session.documents.opened(said)

    def _changed(self, said: v1.DidChangeDocumentNotification) -> None:
        if (session := self._sessions.get(said.session_id)) is not None:
            session.documents.changed(said)

    def _document_closed(self, said: v1.DidCloseDocumentNotification) -> None:
        if (session := self._sessions.get(said.session_id)) is not None:
            session.documents.closed(said)

    def _saved(self, said: v1.DidSaveDocumentNotification) -> Any:
        document = self._document(said.session_id, said.uri)
        if document is not None and self._functions.saved is not None:
            return self._functions.saved(document)
        return None

    def _focused(self, said: v1.DidFocusDocumentNotification) -> Any:
        document = self._document(said.session_id, said.uri)
        if document is not None and self._functions.focused is not None:
            return self._functions.focused(document, positions_of(document).offset(said.position))
        return None

    def _document(self, session_id: str, uri: str) -> MirroredDocument | None:
        session = self._sessions.get(session_id)
        return None if session is None else session.documents.find(uri)

    # Suggestions

    def _suggest(self, request: v1.SuggestNesRequest) -> Awaitable[v1.SuggestNesResponse]:
        # Not an `async def`: the document is looked up before the next change of it is read.
        session = self._session(request.session_id)
        document = session.documents.find(request.uri)
        if document is None:
            raise RequestError.not_found("Unknown document: it is not open in this session", uri=request.uri)
        return self._answered(session, self._request(session, request, document), request.version == document.version)

    def _request(
        self, session: MirroredSession, request: v1.SuggestNesRequest, document: MirroredDocument
    ) -> SuggestionRequest:
        try:
            return SuggestionRequest(request, document, session.folder, self._shown(), self._new_id)
        except ValueError as error:
            raise RequestError.invalid_params(str(error), path="$.selection") from None

    def _new_id(self) -> str:
        return f"suggestion-{next(self._ids)}"

    async def _answered(
        self, session: MirroredSession, request: SuggestionRequest, is_current: bool
    ) -> v1.SuggestNesResponse:
        if not is_current:  # the ranges would refer to a text that we do not have
            return v1.SuggestNesResponse([])
        task = asyncio.create_task(self._found(session, request), name="accord looks for suggestions")
        session.open.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if session.is_closed:
                raise RequestError.cancelled("The suggestion session was closed") from None
            raise
        finally:
            session.open.discard(task)

    async def _found(self, session: MirroredSession, request: SuggestionRequest) -> v1.SuggestNesResponse:
        assert self._functions.suggest is not None, "handlers are registered only for an agent that suggests"
        given: Sequence[v1.NesSuggestion | None] | None = await finished(self._functions.suggest(request))
        response = v1.SuggestNesResponse([it for it in given or () if it is not None and self._fits(it)])
        check_sendable("@agent.on_suggest", response)
        kept: list[v1.NesSuggestion] = []
        for suggestion in response.suggestions:
            essence = essence_of(suggestion, request.document)
            if not session.was_rejected(essence):
                session.remember(suggestion, essence)
                kept.append(suggestion)
        return v1.SuggestNesResponse(kept)

    def _fits(self, suggestion: v1.NesSuggestion) -> bool:
        """Whether the client shows this suggestion; the first that it does not show is logged."""
        fits = is_shown(suggestion, self._shown())
        if not fits and not self._has_complained:
            self._has_complained = True
            log.warning("the client shows no %s; such suggestions are not sent", type(suggestion).__name__)
        return fits

    def _accepted(self, said: v1.AcceptNesNotification) -> Any:
        return self._settled(said.session_id, said.id, "accepted")

    def _rejected(self, said: v1.RejectNesNotification) -> Any:
        return self._settled(said.session_id, said.id, said.reason or "rejected")

    def _settled(self, session_id: str, suggestion_id: str, outcome: str) -> Any:
        session = self._sessions.get(session_id)
        suggestion = None if session is None else session.settled(suggestion_id, rejected=outcome == "rejected")
        if suggestion is not None and self._functions.outcome is not None:
            return self._functions.outcome(suggestion, outcome)
        return None


def essence_of(suggestion: v1.NesSuggestion, document: MirroredDocument) -> str:
    """Return the same text for suggestions of the same thing: for an edit, the old and new text without the
    position.
    """
    if not isinstance(suggestion, v1.NesEditSuggestion) or key_of(suggestion.uri) != key_of(document.uri):
        return repr((type(suggestion).__name__, [getattr(suggestion, it, None) for it in _ESSENTIAL]))
    text = positions_of(document)
    pairs: list[tuple[str, str]] = []
    for edit in suggestion.edits:
        start, end = text.offsets(edit.range)
        pairs.append((text.text[start:end], edit.new_text))
    return repr((key_of(suggestion.uri), pairs))


_ESSENTIAL = ("uri", "edits", "position", "new_name", "search", "replace")


def _id_of(suggestion: v1.NesSuggestion) -> str:
    return "" if isinstance(suggestion, Unknown) else suggestion.id
