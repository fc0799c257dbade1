"""`SuggestionSession`: a suggestion session as its connection sees it; callers hold the `Suggestions`, its face.

What the agent did not ask for is not sent: neither events of documents nor parts of the context. The position encoding
is the one that the agent chose of those that we offered, and `utf-16` if it chose none.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from accord.client.live_agent import LiveAgent
from accord.documents.positions import DEFAULT, Encoding
from accord.errors import REQUEST_CANCELLED, CapabilityMissing, PeerError, ProtocolError
from accord.schema import v1
from accord.schema.base import Notification
from accord.schema.v1 import SessionId


class Document(Protocol):
    """What a request needs of the document that it is about."""

    @property
    def version(self) -> int:
        """The number of its text."""
        ...


class SuggestionSession:
    """A suggestion session, from `nes/start` to `nes/close`."""

    def __init__(self, live: LiveAgent, folder: Path) -> None:
        self.folder = folder
        self.encoding: Encoding = DEFAULT
        self._live = live
        self._id: SessionId | None = None
        self._wishes = v1.NesCapabilities()
        self._latest: _Asked | None = None

    @property
    def id(self) -> SessionId:
        """The id, which is the agent's."""
        if self._id is None:
            raise RuntimeError("the suggestion session is open only inside its `async with` block")
        return self._id

    async def start(self, repository: v1.NesRepository | None) -> None:
        """Start the session; raises CapabilityMissing if the agent makes no suggestions."""
        declared = self._live.answer.agent_capabilities
        if declared.nes is None:
            raise CapabilityMissing("nes", "remote.suggestions()")
        self._wishes, self.encoding = declared.nes, self._agreed(declared.position_encoding)
        folder = self.folder.as_uri()
        request = v1.StartNesRequest(folder, [v1.WorkspaceFolder(folder, self.folder.name)], repository)
        self._id = (await self._live.request(request)).session_id

    async def close(self) -> None:
        """End the session, and what the agent still works on."""
        session_id, self._id = self.id, None
        await self._live.request(v1.CloseNesRequest(session_id), force=True)

    def _agreed(self, encoding: str | None) -> Encoding:
        """The position encoding; ProtocolError for one that was not offered."""
        if encoding is None:
            return DEFAULT
        offered = self._live.offered_encodings or [DEFAULT]
        if encoding not in offered:
            raise ProtocolError(
                f"the agent counts positions in {encoding!r}, which was not offered; offered: {', '.join(offered)}"
            )
        return cast("Encoding", encoding)

    @property
    def wants_whole_texts(self) -> bool:
        """Whether the agent wants the whole text with each change."""
        events = self._wishes.events.document if self._wishes.events else None
        return not (events and events.did_change and events.did_change.sync_kind == "incremental")

    async def tell(self, event: str, notification: Notification) -> None:
        """Tell of an event of a document, if the agent wants to know."""
        events = self._wishes.events.document if self._wishes.events else None
        if events is not None and getattr(events, event) is not None:
            await self.send(notification)

    async def send(self, notification: Notification) -> None:
        """Send a message of the session."""
        await self._live.notify(notification, force=True)

    def wanted(self, context: v1.NesSuggestContext | None) -> v1.NesSuggestContext | None:
        """What of this context the agent asked for, and no more of each than it wants."""
        wishes = self._wishes.context
        if context is None or wishes is None:
            return None
        made: dict[str, Any] = {}
        for field in msgspec.structs.fields(v1.NesContextCapabilities):
            wish, said = getattr(wishes, field.name), getattr(context, field.name, None)
            if field.name != "meta" and wish is not None and said is not None:
                made[field.name] = said[: getattr(wish, "max_count", None)]
        return v1.NesSuggestContext(**made, meta=context.meta) if made else None

    async def ask(self, document: Document, request: v1.SuggestNesRequest) -> list[v1.NesSuggestion]:
        """Send a request for suggestions, which ends the one before."""
        if self._latest is not None:
            self._latest.withdraw()
        await self._live.ready()
        asked = self._latest = _Asked(self._live, document, request)
        return await asked.suggestions()


class _Asked:
    """One request for suggestions. Its answer is read even if no caller waits for it: each suggestion is settled."""

    def __init__(self, live: LiveAgent, document: Document, request: v1.SuggestNesRequest) -> None:
        self._live = live
        self._document = document
        self._request = request
        self._is_withdrawn = False
        self._answer: asyncio.Future[v1.SuggestNesResponse | Exception] = asyncio.get_running_loop().create_future()
        self._posted = live.peer.post(request, force=True)
        self._posted.then(self._answered)

    def withdraw(self) -> None:
        """Ask the agent to stop: a newer request counts."""
        if not self._is_withdrawn and not self._answer.done():
            self._is_withdrawn = True
            self._posted.withdraw()

    async def suggestions(self) -> list[v1.NesSuggestion]:
        """The suggestions; none if the document has changed since, or a newer request counts."""
        try:
            answer = await asyncio.shield(self._answer)
        except asyncio.CancelledError:
            self.withdraw()
            self._is_withdrawn = True
            raise
        if isinstance(answer, PeerError) and answer.code == REQUEST_CANCELLED:
            return []
        if isinstance(answer, Exception):
            raise answer
        return [] if self._is_stale else list(answer.suggestions)

    @property
    def _is_stale(self) -> bool:
        return self._is_withdrawn or self._document.version != self._request.version

    def _answered(self, answer: v1.SuggestNesResponse | Exception) -> None:
        if isinstance(answer, v1.SuggestNesResponse) and self._is_stale:
            self._reject(answer)
        self._answer.set_result(answer)

    def _reject(self, answer: v1.SuggestNesResponse) -> None:
        for value in answer.suggestions:
            suggestion_id = getattr(value, "id", None)
            if suggestion_id is not None:
                told = v1.RejectNesNotification(self._request.session_id, suggestion_id, "cancelled")
                self._live.peer.tell(told, force=True)
