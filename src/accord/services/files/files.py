"""The user's files, lent to agents: `fs/read_text_file` and `fs/write_text_file`, inside of the session's roots.

    Client(files=True)                                what `accord.Files()` is
    Client(files=Files(write=False))                  to read only
    Client(files=Files(unsaved=buffers))              an editor's unsaved text comes before what is on disk

Data's way: the path to a place in a root (`roots`), to a folder that is held open (`confined`), to bytes, to text
(`text`); a write goes back the same way (`replacing`) and is remembered (`journal`). All of it happens in a thread, one
request of a session at a time and in the order they came, so that a read sees the write before it.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec

from accord.engine.handlers import Context, Handlers
from accord.errors import RequestError
from accord.schema import v1
from accord.services.files.atomic import replace
from accord.services.files.confined import folder_of
from accord.services.files.encoding import Lines, NotText, encode_like, texts
from accord.services.files.folder import Folder
from accord.services.files.journal import Change, ChangeJournal
from accord.services.roots import RootedPath, Roots
from accord.services.service import ServedSession, Service, SessionOf
from accord.transports.closing import to_the_end

T = TypeVar("T")

LIMIT = 16 * 1024 * 1024
"""Bytes of a file that are read at most, and of a text that is handed on at most."""

CHUNK = 256 * 1024


class Files(Service):
    """Lends files.

    `unsaved` holds the text of what is open in an editor and not saved, by real path: it is what agents read, and what
    they write goes there as well as to the disk. `on_change` hears of each write. `limit` bounds what is read at once:
    of a larger file, agents can ask for some lines. A file with several names (hard links) may be somebody else's and
    is read only with `hard_links`; writing to one never reaches its other names. `sync` makes each write wait for the
    disk.

        files = accord.Files(on_change=lambda change: print(change.diff()))
        client = accord.Client(files=files)
        ...
        await files.undo(list(files.changes)[-1])
    """

    def __init__(
        self,
        *,
        read: bool = True,
        write: bool = True,
        unsaved: MutableMapping[Path, str] | None = None,
        on_change: Callable[[Change], object] | None = None,
        limit: int = LIMIT,
        hard_links: bool = False,
        sync: bool = False,
    ) -> None:
        self.changes = ChangeJournal()
        """What agents wrote, oldest first."""
        self.unsaved: MutableMapping[Path, str] = {} if unsaved is None else unsaved
        self._read = read
        self._write = write
        self._on_change = on_change
        self._limit = limit
        self._hard_links = hard_links
        self._sync = sync
        self._turns: WeakKeyDictionary[ServedSession, asyncio.Lock] = WeakKeyDictionary()

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        lent = v1.FileSystemCapabilities(read_text_file=self._read, write_text_file=self._write)
        return msgspec.structs.replace(capabilities, fs=lent)

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        if self._read:

            @handlers.on(v1.ReadTextFileRequest)
            async def read(request: v1.ReadTextFileRequest, context: Context | None = None) -> v1.ReadTextFileResponse:
                session, line = session_of(request.session_id), request.line or 1
                # A request is small and a file is not: an agent that asks and takes nothing must not fill the memory.
                text = await self._in_turn(
                    session,
                    lambda: self._read_now(session.roots, request.path, line, request.limit),
                    first=None if context is None else context.wait_for_room,
                )
                return v1.ReadTextFileResponse(text)

        if self._write:

            @handlers.on(v1.WriteTextFileRequest)
            async def write(request: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
                await self.write(session_of(request.session_id), request.path, request.content)
                return v1.WriteTextFileResponse()

    async def read(self, session: ServedSession, path: str, line: int | None = None, limit: int | None = None) -> str:
        """The file's text as the user sees it: from a line on (counted from 1), and so many lines."""
        return await self._in_turn(session, lambda: self._read_now(session.roots, path, line or 1, limit))

    async def write(self, session: ServedSession, path: str, text: str) -> Change:
        """Give the file this text, whether or not it was there."""

        def write() -> Change:
            place = session.roots.locate(path)
            with _explained(place.path), folder_of(place, session.roots, make=True) as folder:
                return self._write_now(session, place, folder, text)

        return await self._in_turn(session, write, then=lambda change: self._note(change, text))

    async def undo(self, change: Change) -> None:
        """Take a change back; raises ValueError when the file was changed again since, or the change is none of ours.

        A file that was new is removed; folders that were made for it stay.
        """
        if change.place is None or change not in tuple(self.changes):
            raise ValueError("only what is in `changes` can be undone")
        place, roots = change.place, Roots([change.place.root])
        with _explained(change.path):
            await asyncio.to_thread(_take_back, change, place, roots, sync=self._sync)
        self.changes.discard(change)
        if change.path in self.unsaved:
            self.unsaved.pop(change.path)

    def _note(self, change: Change, text: str) -> None:
        self.changes.add(change)
        if change.path in self.unsaved:
            self.unsaved[change.path] = text
        if self._on_change is not None:
            self._on_change(change)

    def _read_now(self, roots: Roots, path: str, line: int, limit: int | None) -> str:
        place = roots.locate(path)
        wanted = Lines(line, limit)
        with _explained(place.path), folder_of(place, roots) as folder:
            unsaved = self.unsaved.get(folder.path)
            if unsaved is not None:
                wanted.add(unsaved)
            else:
                self._read_from_disk(folder, wanted, whole=line <= 1 and limit is None)
        return wanted.text

    def _read_from_disk(self, folder: Folder, wanted: Lines, *, whole: bool) -> None:
        with _opened(folder) as fd:
            found = os.fstat(fd)
            if found.st_nlink > 1 and not self._hard_links:
                raise RequestError.invalid_params(
                    "the file has other names (hard links), perhaps elsewhere; Files(hard_links=True) reads it",
                    path=str(folder.path),
                )
            if whole and found.st_size > self._limit:
                raise self._too_large(folder, found.st_size)
            for piece in texts(iter(lambda: os.read(fd, CHUNK), b"")):
                if wanted.add(piece):
                    return
                if wanted.length > self._limit:
                    raise self._too_large(folder, found.st_size)

    def _too_large(self, folder: Folder, size: int) -> RequestError:
        return RequestError.invalid_params(
            f"too much to read at once: ask for some lines of it (limit {self._limit} bytes)",
            path=str(folder.path),
            size=size,
        )

    def _write_now(self, session: ServedSession, place: RootedPath, folder: Folder, text: str) -> Change:
        before = self._before(folder)
        after = encode_like(before, text)
        replace(folder, after, sync=self._sync)
        return Change(folder.path, before, after, session.id, session.agent, place=place)

    def _before(self, folder: Folder) -> bytes | None:
        """What is there, as far as it can be kept: for the journal, and to write like it."""
        if folder.stat() is None:
            return None
        with _opened(folder) as fd:
            if os.fstat(fd).st_size > self._limit:
                raise RequestError.invalid_params("the file is too large to be replaced", path=str(folder.path))
            return _all_of(fd)

    async def _in_turn(
        self,
        session: ServedSession,
        work: Callable[[], T],
        then: Callable[[T], None] | None = None,
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        async def done() -> T:
            result = await asyncio.to_thread(work)
            if then is not None:
                then(result)
            return result

        async with self._turns.setdefault(session, asyncio.Lock()):
            if first is not None:
                await first()
            # A thread cannot be stopped: who is cancelled waits for it, so that nothing of theirs comes later.
            task = asyncio.create_task(done())
            try:
                await to_the_end(task)
            except asyncio.CancelledError:
                task.exception()  # nobody is left to be told
                raise
            return task.result()


@contextmanager
def _opened(folder: Folder) -> Generator[int]:
    fd = folder.open()
    try:
        yield fd
    finally:
        os.close(fd)


def _all_of(fd: int) -> bytes:
    return b"".join(iter(lambda: os.read(fd, CHUNK), b""))


def _take_back(change: Change, place: RootedPath, roots: Roots, *, sync: bool) -> None:
    with folder_of(place, roots) as folder:
        with _opened(folder) as fd:
            if _all_of(fd) != change.after:
                raise ValueError(f"{change.path} was changed again since")
        if change.before is None:
            folder.remove(folder.name)
        else:
            replace(folder, change.before, sync=sync)


_ASKED_WRONGLY = {
    errno.EISDIR: "a folder, not a file",
    errno.ENOTDIR: "one of its folders is a file",
    errno.ELOOP: "changed while it was being opened",
    errno.ENAMETOOLONG: "a name in it is too long",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.EINVAL: "no path that this file system takes",
    errno.ENXIO: "not a file",
}


@contextmanager
def _explained(path: Path) -> Generator[None]:
    """What the system says of a path, in the protocol's words."""
    try:
        yield
    except NotText as error:
        raise RequestError.invalid_params(f"not a text file: {error}", path=str(path)) from error
    except FileNotFoundError as error:
        # The words of the protocol's own error: agents in the field tell by them that a file is only not there yet.
        raise RequestError.not_found("Resource not found", path=str(path)) from error
    except OSError as error:
        if (why := _ASKED_WRONGLY.get(error.errno or 0)) is not None:
            raise RequestError.invalid_params(why, path=str(path)) from error
        raise RequestError.internal(error.strerror or "the file system failed", path=str(path)) from error
