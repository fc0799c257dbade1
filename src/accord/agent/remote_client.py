"""The client as an agent holds it: the files and terminals that it lends, and what it said it can do."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from accord.capabilities import Capabilities
from accord.dispatch import Peer
from accord.schema import v1
from accord.schema.base import Json, Request

if TYPE_CHECKING:
    from accord.agent.session import Session

ResultT = TypeVar("ResultT")


class Ask(Protocol):
    """Sends a request and waits for its answer."""

    def __call__(self, request: Request[ResultT], /) -> Awaitable[ResultT]: ...


@dataclass(slots=True)
class Client:
    """The client at the other end of a connection."""

    peer: Peer
    info: v1.Implementation | None = None
    """Its name and version, where it told them."""


class RemoteClient:
    """The client as one session uses it."""

    def __init__(self, client: Client, session: Session, ask: Ask) -> None:
        self._client = client
        self._session = session
        self._ask = ask

    @property
    def info(self) -> v1.Implementation | None:
        """Its name and version, where it told them."""
        return self._client.info

    @property
    def capabilities(self) -> Capabilities:
        """What it declared: `client.capabilities.has("fs.read_text_file")`."""
        return self._client.peer.capabilities

    async def read_text_file(self, path: str | Path, *, line: int | None = None, limit: int | None = None) -> str:
        """A file's text as the editor has it, or `limit` lines of it from `line` (1-based) on."""
        wanted = self._session.roots.resolve(path)
        return (await self._ask(v1.ReadTextFileRequest(self._session.id, wanted, line, limit))).content

    async def write_text_file(self, path: str | Path, content: str) -> None:
        """Write a file through the editor."""
        await self._ask(v1.WriteTextFileRequest(self._session.id, self._session.roots.resolve(path), content))

    async def request(self, request: Request[ResultT]) -> ResultT:
        """Any other request."""
        return await self._ask(request)

    async def notify_raw(self, method: str, params: Json = None) -> Any:
        """Any notification, in plain JSON values."""
        await self._client.peer.notify_raw(method, params)
