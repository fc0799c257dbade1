"""`Suggestions`: a suggestion session with an agent, its open documents, and the agent's suggestions.

The document is authoritative, and the agent's mirror follows it: each change is sent before the next request. A
suggestion applies to one version of the document, so one that arrives for an older version is rejected. Only what the
agent asked for is sent, both of the documents' events and of the context. The position encoding is the one that the
agent chose of those that we offered, and `utf-16` if it chose none.
"""

# The private members of an agent are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from accord.documents.text_document import (
    DEFAULT,
    Edit,
    Encoding,
    TextDocument,
    addressable,
    key_of,
    smallest_edit,
    uri_of,
    with_edits,
)
from accord.errors import REQUEST_CANCELLED, AccordError, CapabilityMissing, PeerError, ProtocolError, StaleSuggestion
from accord.paths import path_of_uri
from accord.schema import v1
from accord.schema.base import JsonObject, Notification, Unknown
from accord.schema.sendable import check_meta, with_meta
from accord.schema.v1 import SessionId

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent


class Suggestions:
    """A suggestion session with an agent, for `async with`; `RemoteAgent.suggestions` makes it.

    async with remote.suggestions("/home/me/project") as suggestions:
        document = await suggestions.open("a.py", "prin")
        for suggestion in await document.suggest(at=4):
            print(suggestion.new_text)
    """

    def __init__(
        self, remote: RemoteAgent, folder: Path, repository: v1.NesRepository | None, meta: JsonObject | None
    ) -> None:
        self.meta: JsonObject = {}
        """The `_meta` of the answer that started the session."""
        self._remote = remote
        self._sent_meta = meta
        self._folder = folder
        self._repository = repository
        self._documents: dict[str, OpenDocument] = {}
        self._encoding: Encoding = DEFAULT
        self._id: SessionId | None = None
        self._wishes = v1.NesCapabilities()
        self._latest: _RequestedSuggestions | None = None

    def __repr__(self) -> str:
        return f"Suggestions({str(self._folder)!r}, documents={len(self._documents)})"

    @property
    def id(self) -> v1.SessionId:
        """The id of the session, which is the agent's; only inside the block."""
        if self._id is None:
            raise RuntimeError("the suggestion session is open only inside its `async with` block")
        return self._id

    async def __aenter__(self) -> Self:
        """Start the session; raises `CapabilityMissing` if the agent makes no suggestions."""
        declared = self._remote._answer.agent_capabilities
        if declared.nes is None:
            raise CapabilityMissing("nes", "remote.suggestions()")
        self._wishes, self._encoding = declared.nes, self._agreed(declared.position_encoding)
        folder = self._folder.as_uri()
        request = v1.StartNesRequest(folder, [v1.WorkspaceFolder(folder, self._folder.name)], self._repository)
        answer = await self._remote.request(with_meta("remote.suggestions", request, self._sent_meta))
        self._id, self.meta = answer.session_id, answer.meta or {}
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session and the agent's open requests."""
        self._documents.clear()
        session_id, self._id = self.id, None
        try:
            await self._remote.request(v1.CloseNesRequest(session_id), force=True)
        except AccordError:
            if error is None:  # otherwise the error that ends the block is more informative
                raise

    async def open(
        self, file: str | Path, text: str, *, language: str = "", meta: JsonObject | None = None
    ) -> OpenDocument:
        """Open a document, named by a path relative to the folder or by a URI, with its text as the user sees it.

        `language` is an identifier such as `python`. Raises ValueError if the document is open already.
        """
        uri = uri_of(file, self._folder)
        if key_of(uri) in self._documents:
            raise ValueError(f"{uri} is open already; change the document that `open` returned")
        document = OpenDocument(self, uri, language, text)
        opened = v1.DidOpenDocumentNotification(self.id, uri, language, document.version, text)
        opened = with_meta("suggestions.open", opened, meta)
        self._documents[key_of(uri)] = document
        await self._tell("did_open", opened)
        return document

    def _agreed(self, encoding: str | None) -> Encoding:
        """The position encoding; ProtocolError for one that was not offered."""
        if encoding is None:
            return DEFAULT
        offered = self._remote._offered_encodings or [DEFAULT]
        if encoding not in offered:
            raise ProtocolError(
                f"the agent counts positions in {encoding!r}, which was not offered; offered: {', '.join(offered)}"
            )
        return cast("Encoding", encoding)

    @property
    def _wants_whole_texts(self) -> bool:
        """Whether the agent wants the whole text with each change."""
        events = self._wishes.events.document if self._wishes.events else None
        return not (events and events.did_change and events.did_change.sync_kind == "incremental")

    async def _tell(self, event: str, notification: Notification) -> None:
        """Send an event of a document, if the agent wants it."""
        events = self._wishes.events.document if self._wishes.events else None
        if events is not None and getattr(events, event) is not None:
            await self._send(notification)

    async def _send(self, notification: Notification) -> None:
        """Send a message of the session."""
        await self._remote.notify(notification, force=True)

    def _wanted(self, context: v1.NesSuggestContext | None) -> v1.NesSuggestContext | None:
        """Return the part of this context that the agent asked for, and no more of each than it wants."""
        wishes = self._wishes.context
        if context is None or wishes is None:
            return None
        made: dict[str, Any] = {}
        for field in msgspec.structs.fields(v1.NesContextCapabilities):
            wish, said = getattr(wishes, field.name), getattr(context, field.name, None)
            if field.name != "meta" and wish is not None and said is not None:
                made[field.name] = said[: getattr(wish, "max_count", None)]
        return v1.NesSuggestContext(**made, meta=context.meta) if made else None

    async def _ask(self, document: OpenDocument, request: v1.SuggestNesRequest) -> list[v1.NesSuggestion]:
        """Send a request for suggestions, which ends the one before."""
        if self._latest is not None:
            self._latest.withdraw()
        await self._remote._restarter.ready()
        asked = self._latest = _RequestedSuggestions(self._remote, document, request)
        return await asked.suggestions()


class OpenDocument:
    """A document that is open in a suggestion session; `Suggestions.open` returns it. Offsets are indexes of `text`."""

    def __init__(self, session: Suggestions, uri: str, language: str, text: str) -> None:
        self.uri: str = uri
        """The document's URI."""
        self.language: str = language
        """The language, such as `python`."""
        self._session = session
        self._text = TextDocument(text, session._encoding)
        self._version = 1

    def __repr__(self) -> str:
        return f"OpenDocument({self.uri!r}, version={self.version})"

    @property
    def text(self) -> str:
        """The whole text, as the user sees it."""
        return self._text.text

    @property
    def version(self) -> int:
        """The number of the text; each change adds one."""
        return self._version

    @property
    def path(self) -> Path | None:
        """The path of the file; None for a document that is not a file."""
        return path_of_uri(self.uri)

    async def change(self, text: str, *, meta: JsonObject | None = None) -> None:
        """Change the whole text; the agent gets the smallest change, or the text if it prefers that."""
        edit = smallest_edit(self.text, text)
        if text != self.text:
            await self._edit(edit, meta)

    async def edit(self, start: int, end: int, text: str, *, meta: JsonObject | None = None) -> None:
        """Replace the text between two offsets."""
        if not 0 <= start <= end <= len(self.text):
            raise ValueError(f"start and end must be in order, from 0 to {len(self.text)}; got {start} and {end}")
        await self._edit(addressable(self.text, Edit(start, end, text)), meta)

    async def save(self, *, meta: JsonObject | None = None) -> None:
        """Notify the agent that the document was saved, if it wants that."""
        saved = v1.DidSaveDocumentNotification(self._session.id, self.uri)
        await self._session._tell("did_save", with_meta("document.save", saved, meta))

    async def focus(self, at: int, *, visible: tuple[int, int] | None = None, meta: JsonObject | None = None) -> None:
        """Notify the agent that the document got the focus, if it wants that; `visible` is the range on screen."""
        seen = self._text.range(*(visible or (0, len(self.text))))
        position = self._text.position(at)
        notification = v1.DidFocusDocumentNotification(self._session.id, self.uri, self.version, position, seen)
        await self._session._tell("did_focus", with_meta("document.focus", notification, meta))

    async def close(self, *, meta: JsonObject | None = None) -> None:
        """Close the document: the agent forgets it."""
        closed = with_meta("document.close", v1.DidCloseDocumentNotification(self._session.id, self.uri), meta)
        if self._session._documents.pop(key_of(self.uri), None) is not None:
            await self._session._tell("did_close", closed)

    async def suggest(
        self,
        at: int,
        *,
        selection: tuple[int, int] | None = None,
        trigger: v1.NesTriggerKind = "automatic",
        context: v1.NesSuggestContext | None = None,
        meta: JsonObject | None = None,
    ) -> list[Suggestion]:
        """Ask for suggestions for the cursor at this offset, the best first.

        A newer call in the same session ends this one, which then returns an empty list; so does a change of the
        document before the answer comes. `trigger` is `automatic`, `diagnostic` or `manual`. Of `context`, only what
        the agent asked for is sent.
        """
        request = v1.SuggestNesRequest(
            self._session.id,
            self.uri,
            self.version,
            self._text.position(at),
            trigger,
            None if selection is None else self._text.range(*selection),
            self._session._wanted(context),
        )
        found = await self._session._ask(self, with_meta("document.suggest", request, meta))
        return [Suggestion(self._session, self, it, edits_in(self.uri, self._text, it)) for it in found]

    async def _edit(self, edit: Edit, meta: JsonObject | None) -> None:
        check_meta("document.edit(meta=...)", meta)
        changed_range = None if self._session._wants_whole_texts else self._text.range(edit.start, edit.end)
        self._text.replace(*edit)
        self._version += 1
        change = v1.TextDocumentContentChangeEvent(self.text if changed_range is None else edit.text, changed_range)
        sent = v1.DidChangeDocumentNotification(self._session.id, self.uri, self.version, [change], meta=meta)
        await self._session._tell("did_change", sent)


class Suggestion:
    """A suggestion of the agent; accept or reject each one that was shown."""

    def __init__(
        self, session: Suggestions, document: OpenDocument, value: v1.NesSuggestion, edits: list[Edit] | None
    ) -> None:
        self.value: v1.NesSuggestion = value
        """The suggestion as the agent sent it, such as `v1.NesEditSuggestion`."""
        self._session = session
        self._document = document
        self._version = document.version
        self._is_settled = False
        self._edits = edits

    def __repr__(self) -> str:
        return f"Suggestion({self.value!r})"

    @property
    def new_text(self) -> str | None:
        """Return the document's text with the edits of this suggestion; None if it edits another document, or none."""
        return None if self._edits is None else with_edits(self._text_then(), self._edits)

    async def accept(self, *, meta: JsonObject | None = None) -> str:
        """Apply the suggestion, and notify the agent; returns the text of the document.

        An edit is applied to the document, and the agent is notified of the change as of any other. Applying other
        kinds is up to you. Raises `StaleSuggestion` if the document has changed since.
        """
        text = self.new_text
        accepted = with_meta("accept", v1.AcceptNesNotification(self._session.id, _id_of(self.value)), meta)
        self._settle()
        await self._session._send(accepted)
        if text is not None:
            await self._document.change(text)
        return self._document.text

    async def reject(self, reason: v1.NesRejectReason = "rejected", *, meta: JsonObject | None = None) -> None:
        """Notify the agent that the suggestion was not accepted, because it was `ignored`, for example.

        The reasons are `rejected`, `ignored`, `replaced` and `cancelled`.
        """
        rejected = with_meta("reject", v1.RejectNesNotification(self._session.id, _id_of(self.value), reason), meta)
        self._settle()
        await self._session._send(rejected)

    def _text_then(self) -> str:
        if self._document.version != self._version:
            raise StaleSuggestion(
                f"the suggestion is for version {self._version} of {self._document.uri}, which has version "
                f"{self._document.version} now; ask for suggestions again"
            )
        return self._document.text

    def _settle(self) -> None:
        if self._is_settled:
            raise RuntimeError("this suggestion was accepted or rejected already")
        self._is_settled = True


def edits_in(uri: str, text: TextDocument, value: v1.NesSuggestion) -> list[Edit] | None:
    """Return the edits of a suggestion for the document with this URI and text; None for others. Raises
    ProtocolError.
    """
    if not isinstance(value, v1.NesEditSuggestion) or key_of(value.uri) != key_of(uri):
        return None
    try:
        edits = [Edit(*text.offsets(edit.range), edit.new_text) for edit in value.edits]
        with_edits(text.text, edits)
    except ValueError as error:
        raise ProtocolError(f"nes/suggest: a suggestion of the agent is invalid: {error}") from None
    return edits


def _id_of(value: v1.NesSuggestion) -> str:
    said = value.raw.get("id") if isinstance(value, Unknown) else value.id
    return said if isinstance(said, str) else ""


class _RequestedSuggestions:
    """One request for suggestions. Its answer is read even if no caller waits for it: each suggestion is settled."""

    def __init__(self, remote: RemoteAgent, document: OpenDocument, request: v1.SuggestNesRequest) -> None:
        self._remote = remote
        self._document = document
        self._request = request
        self._is_withdrawn = False
        self._answer: asyncio.Future[v1.SuggestNesResponse | Exception] = asyncio.get_running_loop().create_future()
        self._posted = remote.peer.post(request, force=True)
        self._posted.then(self._answered)

    def withdraw(self) -> None:
        """Ask the agent to stop: a newer request counts."""
        if not self._is_withdrawn and not self._answer.done():
            self._is_withdrawn = True
            self._posted.withdraw()

    async def suggestions(self) -> list[v1.NesSuggestion]:
        """Return the suggestions; none if the document has changed since, or a newer request was made."""
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
                rejection = v1.RejectNesNotification(self._request.session_id, suggestion_id, "cancelled")
                self._remote.peer.tell(rejection, force=True)
