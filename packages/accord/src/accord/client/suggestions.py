"""`Suggestions`: a suggestion session with an agent, as its caller holds it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from accord.client.live_agent import LiveAgent
from accord.client.open_document import OpenDocument
from accord.client.suggestion_session import SuggestionSession
from accord.documents.uris import key_of, uri_of
from accord.errors import AccordError
from accord.schema import v1


class Suggestions:
    """A suggestion session with an agent, for `async with`; `RemoteAgent.suggestions` makes it.

    async with remote.suggestions("/home/me/project") as suggestions:
        document = await suggestions.open("a.py", "prin")
        for suggestion in await document.suggest(at=4):
            print(suggestion.new_text)
    """

    def __init__(self, live: LiveAgent, folder: Path, repository: v1.NesRepository | None) -> None:
        self._session = SuggestionSession(live, folder)
        self._repository = repository
        self._documents: dict[str, OpenDocument] = {}

    def __repr__(self) -> str:
        return f"Suggestions({str(self._session.folder)!r}, documents={len(self._documents)})"

    @property
    def id(self) -> str:
        """The id of the session, which is the agent's; only inside the block."""
        return self._session.id

    async def __aenter__(self) -> Self:
        """Start the session; raises `CapabilityMissing` if the agent makes no suggestions."""
        await self._session.start(self._repository)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session and what the agent still works on."""
        self._documents.clear()
        try:
            await self._session.close()
        except AccordError:
            if error is None:  # else the error that ends the block says more
                raise

    async def open(self, file: str | Path, text: str, *, language: str = "") -> OpenDocument:
        """Open a document, named by a path from the folder on or by a URI, with its text as the user sees it.

        `language` is an identifier such as `python`. Raises ValueError if the document is open already.
        """
        uri = uri_of(file, self._session.folder)
        if key_of(uri) in self._documents:
            raise ValueError(f"{uri} is open already; change the document that `open` returned")
        document = OpenDocument(self._session, uri, language, text, self._forget)
        self._documents[key_of(uri)] = document
        told = v1.DidOpenDocumentNotification(self._session.id, uri, language, document.version, text)
        await self._session.tell("did_open", told)
        return document

    def _forget(self, document: OpenDocument) -> bool:
        """Forget a document that is closed; whether it was open."""
        return self._documents.pop(key_of(document.uri), None) is not None
