"""`turn.files`: the files of a session.

A client that lends files has unsaved edits, so its files come first. If it lends none, the same service that a client
would lend reads and writes the files of the agent's machine: only inside the session's folders, with the same errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Container
from os import PathLike
from typing import Any, TypeVar

from accord.agent.record import Record
from accord.agent.remote_client import ConnectedClient, RemoteClient, check_line
from accord.errors import PeerError, RequestError
from accord.mistakes import check_text
from accord.schema import v1
from accord.schema.base import JsonObject, Request
from accord.services.file_service import Files, RewindFilesResponse
from accord.services.service import LocalHost, ServedSession

T = TypeVar("T")

_DISK = Files()
"""The files of this machine. It stores its data by session."""


def files_here(local: LocalHost | None) -> Files | None:
    """Return the files of this machine, or `Files` of `Agent(local=...)`; None if it has other services instead."""
    return _DISK if local is None else next((it for it in local.services if type(it) is Files), None)


async def restore_files(local: LocalHost | None, prompts: Container[str], *, overwrite: bool) -> RewindFilesResponse:
    """Restore files that were written here to their contents before these messages of the user."""
    files = files_here(local) or _DISK
    changes = [it for it in files.changes if it.message_id in prompts]
    left = await files.rewind(changes, overwrite=overwrite)
    restored = dict.fromkeys(it.path for it in changes if it.path not in left)
    return RewindFilesResponse([str(path) for path in restored], [str(path) for path in left])


class TurnFiles:
    """The files of a session, for one turn.

    >>> async def upper(turn):
    ...     text = await turn.files.read("notes.txt")
    ...     await turn.files.write("notes.txt", text.upper())
    """

    def __init__(self, session: ServedSession, record: Record, client: RemoteClient, link: ConnectedClient) -> None:
        self._session = session
        self._record = record
        self._client = client
        self._link = link

    async def read(
        self,
        path: str | PathLike[str],
        *,
        line: int | None = None,
        limit: int | None = None,
        meta: JsonObject | None = None,
    ) -> str:
        """Read a file's text, or `limit` lines of it starting at `line` (1-based).

        A relative path starts at `cwd`. `meta` is the `_meta` of the request to the client. Raises PeerError for a file
        that does not exist, cannot be read, or is outside the session's folders.
        """
        files = self._here("fs.read_text_file", "turn.files.read()")
        if files is None:
            return await self._client.read_text_file(path, line=line, limit=limit, meta=meta)
        check_line(line)
        reading = files.read(self._session, self._resolve(path), line, limit)
        return await _as_answered(v1.ReadTextFileRequest, reading)

    async def write(self, path: str | PathLike[str], text: str, *, meta: JsonObject | None = None) -> None:
        """Write a file; it is created where it is missing. `meta` and errors are as in `read`."""
        check_text("turn.files.write()", text)
        files = self._here("fs.write_text_file", "turn.files.write()")
        if files is None:
            await self._client.write_text_file(path, text, meta=meta)
        else:
            writing = files.write(self._session, self._resolve(path), text, message_id=self._record.message_id)
            await _as_answered(v1.WriteTextFileRequest, writing)

    def _here(self, capability: str, action: str) -> Files | None:
        """Return the service that answers here; None if the client does, or a service that the author wrote."""
        if self._client.capabilities.has(capability):
            return None
        self._link.check_local(capability, action)
        return files_here(self._link.local)

    def _resolve(self, path: str | PathLike[str]) -> str:
        return str(self._session.cwd / path)


async def _as_answered(message: type[Request[Any]], work: Awaitable[T]) -> T:
    """Run this; its errors are those that a client would answer with."""
    try:
        return await work
    except RequestError as error:
        refusal = PeerError(message.__method__, error.code, error.message, error.data)
        refusal.safe_to_tell = True  # a RequestError is made for the client
        raise refusal from error
