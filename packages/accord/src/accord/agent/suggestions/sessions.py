"""The suggestion sessions of one connection: their documents, their open requests, and what became of suggestions.

They are not chat sessions: they have their own ids, and none of the methods `session/...` works on them. A request of
one ends when the client cancels it or closes its session; a later request does not end an earlier one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from accord.agent.suggestions.functions import SuggestionFunctions, finished
from accord.agent.suggestions.mirror import MirroredDocument, Mirrors, positions_of
from accord.agent.suggestions.request import SuggestionRequest, is_shown
from accord.documents.positions import DEFAULT, Encoding, chosen
from accord.documents.uris import key_of
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import RequestError
from accord.file_uris import path_of_uri
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.sendable import check_sendable
from accord.schema.v1 import SessionId

log = logging.getLogger("accord")

REMEMBERED = 100
"""How many of the last suggestions of a session are remembered, for what becomes of them."""


class SuggestionSession:
    """One suggestion session, from `nes/start` to `nes/close`."""

    def __init__(self, folder: Path | None, encoding: Encoding) -> None:
        self.folder = folder
        self.documents = Mirrors(encoding)
        self.open: set[asyncio.Task[v1.SuggestNesResponse]] = set()
        """The requests that are not answered."""
        self.is_closed = False
        self._given: dict[str, tuple[v1.NesSuggestion, str]] = {}
        self._rejected: set[str] = set()

    def remember(self, suggestion: v1.NesSuggestion, essence: str) -> None:
        """Keep a suggestion that was sent, until the client says what became of it."""
        self._given[_id_of(suggestion)] = (suggestion, essence)
        if len(self._given) > REMEMBERED:
            del self._given[next(iter(self._given))]

    def settled(self, suggestion_id: str, *, rejected: bool) -> v1.NesSuggestion | None:
        """The suggestion with this id, which the user has decided on; None for an unknown one."""
        suggestion, essence = self._given.pop(suggestion_id, (None, ""))
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
        self._sessions: dict[str, SuggestionSession] = {}
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
        self._sessions[session_id] = SuggestionSession(folder, self._encoding())
        return v1.StartNesResponse(session_id)

    def _close(self, request: v1.CloseNesRequest) -> None:
        self._session(request.session_id).close()
        del self._sessions[request.session_id]

    def _session(self, session_id: str) -> SuggestionSession:
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
        # Not an `async def`: the document is looked up before a later change of it is read.
        session = self._session(request.session_id)
        document = session.documents.find(request.uri)
        if document is None:
            raise RequestError.not_found("Unknown document: it is not open in this session", uri=request.uri)
        return self._answered(session, self._request(session, request, document), request.version == document.version)

    def _request(
        self, session: SuggestionSession, request: v1.SuggestNesRequest, document: MirroredDocument
    ) -> SuggestionRequest:
        try:
            return SuggestionRequest(request, document, session.folder, self._shown(), self._new_id)
        except ValueError as error:
            raise RequestError.invalid_params(str(error), path="$.selection") from None

    def _new_id(self) -> str:
        return f"suggestion-{next(self._ids)}"

    async def _answered(
        self, session: SuggestionSession, request: SuggestionRequest, is_current: bool
    ) -> v1.SuggestNesResponse:
        if not is_current:  # ranges would mean a text that we do not have
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

    async def _found(self, session: SuggestionSession, request: SuggestionRequest) -> v1.SuggestNesResponse:
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
    """The same text for suggestions of the same thing: for an edit what it replaces by what, wherever that is now."""
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
