"""Lends the user's files to agents, keeps a journal of their writes, and summarises a change in a few lines.

The journal stores the bytes before and after each write, to display and to undo it. A summary (`FileChange`) has the
number of lines added and removed, and the lines. An agent chooses both texts, and comparing them well takes quadratic
time. So the lines that both texts share at their start and end are cut off first, and the part between is compared only
if it is short. A long change is shown as its old lines and its new ones; its numbers count the lines that only one side
has.
"""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import errno
import os
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec

from accord._internal.tasks import to_the_end
from accord.engine.handlers import Handlers
from accord.engine.peer import Context
from accord.errors import RequestError
from accord.project.confined import Folder, RootedPath, Roots, folder_of
from accord.schema import v1
from accord.schema.base import Model, Request
from accord.services.file_content import LineRange, NotText, decode, encode_like, replace, texts
from accord.services.service import ServedSession, Service, SessionOf

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of changes that are kept; the oldest are dropped."""

MOST = 10_000
"""Number of changes that are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class AgentWrite:
    """One write to a file. `before` is None if the file is new.

    >>> print(AgentWrite(Path("/p/a.txt"), b"one\\n", b"two\\n").diff(), end="")
    --- /p/a.txt
    +++ /p/a.txt
    @@ -1 +1 @@
    -one
    +two
    """

    path: Path
    before: bytes | None
    after: bytes
    session_id: str = ""
    agent: str = ""
    at: float = field(default_factory=time.time)
    place: RootedPath | None = field(default=None, repr=False)
    message_id: str = ""
    """The id of the user's message in whose turn it was written; empty if unknown."""

    def diff(self) -> str:
        """A unified diff; a single line if one of the sides is not text."""
        try:
            old, new = decode(self.before or b""), decode(self.after)
        except NotText:
            return f"Binary file {self.path} differs\n"
        name = "/dev/null" if self.before is None else str(self.path)
        lines = difflib.unified_diff(_lines_of(old), _lines_of(new), name, str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class ChangeJournal:
    """The latest changes, oldest first, up to `kept` bytes."""

    def __init__(self, kept: int = MOST_BYTES) -> None:
        self._most_bytes = kept
        self._changes: deque[AgentWrite] = deque()
        self._size = 0
        self.dropped_at = 0.0
        """When the latest dropped change was made; 0 if none was dropped."""

    def __iter__(self) -> Iterator[AgentWrite]:
        return iter(tuple(self._changes))

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, change: AgentWrite) -> None:
        """Add a change and drop the oldest ones that no longer fit."""
        self._changes.append(change)
        self._size += _size(change)
        while self._size > self._most_bytes or len(self._changes) > MOST:
            dropped = self._changes.popleft()
            self._size -= _size(dropped)
            self.dropped_at = dropped.at

    def replace(self, change: AgentWrite, other: AgentWrite) -> None:
        """Replace one change by another, if it is still kept."""
        if change in self._changes:
            self._changes[self._changes.index(change)] = other
            self._size += _size(other) - _size(change)

    def discard(self, change: AgentWrite) -> None:
        """Remove a change, if it is still kept."""
        if change in self._changes:
            self._changes.remove(change)
            self._size -= _size(change)


class RewindFilesResponse(Model):
    """The result: real paths of the files that were restored, and of those that were left."""

    restored: list[str]
    left: list[str]
    """Files that others have changed since."""


class RewindFilesRequest(Request[RewindFilesResponse], method="_accord/rewind_files"):
    """Restore the files that the agent wrote without the client to their contents before the message at a cursor.

    It is an extension of Accord's agents. Without a cursor, all files that were written in the session are restored.
    """

    session_id: str
    cursor_id: str | None = None
    overwrite: bool = False
    """Whether files that somebody else has changed since are restored, too."""


def _size(change: AgentWrite) -> int:
    return len(change.before or b"") + len(change.after)


def _lines_of(text: str) -> list[str]:
    """Split at line feeds only: `str.splitlines` would also split at form feeds."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


COMPARED = 200
"""Lines of each side that are compared one by one."""
AROUND = 1
"""Unchanged lines that are shown before and after a change."""
GAP = "⋯"
"""Replaces unchanged lines between two changes."""


class FileChange:
    """The change from one text to another.

    >>> change = FileChange("one\\ntwo\\n", "one\\n2\\n")
    >>> change.summary, list(change.lines())
    ('+1 -1', [' one', '-two', '+2'])
    """

    def __init__(self, old: str | None, new: str) -> None:
        self.is_new = old is None
        """Whether the file did not exist before."""
        before, after = _lines(old or ""), _lines(new)
        start = _shared(before, after)
        end = _shared(before[start:][::-1], after[start:][::-1])
        self._leading = before[max(0, start - AROUND) : start]
        self._trailing = before[len(before) - end :][:AROUND]
        self._old, self._new = before[start : len(before) - end], after[start : len(after) - end]

    @property
    def added(self) -> int:
        """The number of new lines."""
        return self._counts[0]

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return self._counts[1]

    @property
    def summary(self) -> str:
        """The numbers of added and removed lines: `+3 -1`, `new file, +3`, or `unchanged`."""
        numbers = [f"+{self.added:,}"] * bool(self.added) + [f"-{self.removed:,}"] * bool(self.removed)
        text = " ".join(numbers) or "unchanged"
        return f"new file, {' '.join(numbers) or 'empty'}" if self.is_new else text

    def lines(self) -> Iterator[str]:
        """The changed lines, each after `+` or `-`, with a few unchanged ones around them, after a blank."""
        yield from (f" {line}" for line in self._leading)
        for place, (kind, old_start, old_end, new_start, new_end) in enumerate(self._opcodes):
            if kind == "equal":
                same = self._old[old_start:old_end]
                yield from _around(same, is_first=place == 0, is_last=place == len(self._opcodes) - 1)
                continue
            yield from (f"-{line}" for line in self._old[old_start:old_end])
            yield from (f"+{line}" for line in self._new[new_start:new_end])
        yield from (f" {line}" for line in self._trailing)

    @cached_property
    def _opcodes(self) -> Sequence[tuple[str, int, int, int, int]]:
        old, new = self._old, self._new
        if max(len(old), len(new)) > COMPARED:
            return [("replace", 0, len(old), 0, len(new))]
        return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()

    @cached_property
    def _counts(self) -> tuple[int, int]:
        if max(len(self._old), len(self._new)) > COMPARED:
            old, new = Counter(self._old), Counter(self._new)
            return (new - old).total(), (old - new).total()
        changed = [it for it in self._opcodes if it[0] != "equal"]
        return sum(it[4] - it[3] for it in changed), sum(it[2] - it[1] for it in changed)


def _around(same: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[str]:
    before, after = (0 if is_first else AROUND), (0 if is_last else AROUND)
    if len(same) <= before + after + 1:
        yield from (f" {line}" for line in same)
        return
    yield from (f" {line}" for line in same[:before])
    yield GAP
    yield from (f" {line}" for line in same[len(same) - after :])


def _shared(one: Sequence[str], two: Sequence[str]) -> int:
    """Return how many lines both have in common at their start."""
    for place, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return place
    return min(len(one), len(two))


def _lines(text: str) -> list[str]:
    """Return the lines of a text, without their ends; a last line without a newline is of its own kind."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += "  (no newline at the end)"
    return lines


# Lends the user's files to agents, inside the session's roots: `fs/read_text_file` and `fs/write_text_file`.
#
#     Client(files=True)                                the same as `accord.Files()`
#     Client(files=Files(write=False))                  read-only
#     Client(files=Files(unsaved=buffers))              an editor's unsaved text takes precedence over the disk
#
# A read turns the path into a place in a root (`Roots`), opens its folder (`confined`), reads bytes and decodes them
# (`file_content`). A write goes the other way: it encodes the text, replaces the file (`file_content`) and records the
# change (`ChangeJournal`). Both run in a thread. The requests of one session run one at a time and in order, so a read
# sees the write before it.


T = TypeVar("T")

LIMIT = 16 * 1024 * 1024
"""Most bytes that one request may read."""

CHUNK = 256 * 1024
"""Bytes that are read at a time."""


class Files(Service):
    """Lends files.

    `read` and `write` allow agents to do so. `unsaved` holds the text of files that are open in an editor and not
    saved, by real path: agents read this text, and their writes go there as well as to the disk. `on_change` is called
    with each write. `limit` is the most bytes that one request may read; of a larger file, agents can request a range
    of lines. A file with several names (hard links) may also be outside the roots, so it is read only if `hard_links`
    is true; a write never reaches its other names. `sync` makes each write wait for the disk.

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
        on_change: Callable[[AgentWrite], object] | None = None,
        limit: int = LIMIT,
        hard_links: bool = False,
        sync: bool = False,
    ) -> None:
        self.changes = ChangeJournal()
        """The writes of agents, oldest first."""
        self.unsaved: MutableMapping[Path, str] = {} if unsaved is None else unsaved
        """The unsaved text of open files, by real path."""
        self._read = read
        self._write = write
        self._on_change = on_change
        self._limit = limit
        self._hard_links = hard_links
        self._sync = sync
        self._locks: WeakKeyDictionary[ServedSession, asyncio.Lock] = WeakKeyDictionary()

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Declare the methods that are lent."""
        lent = v1.FileSystemCapabilities(read_text_file=self._read, write_text_file=self._write)
        return msgspec.structs.replace(capabilities, fs=lent)

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `fs/read_text_file` and `fs/write_text_file`."""
        if self._read:

            @handlers.on(v1.ReadTextFileRequest)
            async def read(request: v1.ReadTextFileRequest, context: Context | None = None) -> v1.ReadTextFileResponse:
                session, line = session_of(request.session_id), request.line or 1
                # A request is small and a file is not: an agent that reads no answers must not fill our memory.
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
        """Read a file as the user sees it.

        `line` is the first line to read, counted from 1; `limit` is the number of lines.
        """
        return await self._in_turn(session, lambda: self._read_now(session.roots, path, line or 1, limit))

    async def write(self, session: ServedSession, path: str, text: str, *, message_id: str = "") -> AgentWrite:
        """Write a file, which may be new; `message_id` names the user's message that led to it."""

        def write() -> AgentWrite:
            place = session.roots.locate(path)
            with _explained(place.path), folder_of(place, session.roots, make=True) as folder:
                return self._write_now(session, place, folder, text, message_id)

        return await self._in_turn(session, write, then=lambda change: self._note(change, text))

    async def undo(self, change: AgentWrite) -> None:
        """Undo a change; raises ValueError if the file has changed since, or the change is not in `changes`.

        A file that the change created is removed; folders that were created for it stay.
        """
        await self._undo(change, "it")
        self.changes.discard(change)

    async def undo_part(self, change: AgentWrite, content: bytes) -> AgentWrite:
        """Write the file's content after a part of a change was undone; returns the remaining change.

        Raises ValueError if the file has changed since, or the change is not in `changes`.
        """
        await self._undo(change, "a part of it", content)
        left = dataclasses.replace(change, after=content)
        self.changes.replace(change, left)
        return left

    async def _undo(self, change: AgentWrite, what: str, content: bytes | None = None) -> None:
        if change.place is None or change not in tuple(self.changes):
            raise ValueError(f"change is not in `changes`, so {what} cannot be undone")
        with _explained(change.path):
            await asyncio.to_thread(_take_back, change, change.place, content, sync=self._sync)
        self.unsaved.pop(change.path, None)

    async def rewind(self, changes: Iterable[AgentWrite], *, overwrite: bool = False) -> list[Path]:
        """Restore files to their contents before these changes; returns the files that are left unchanged.

        A file is left, and its changes stay in `changes`, if others have changed it between these changes or since;
        `overwrite` restores it all the same. A file that was created is removed, one that was deleted since is written
        again.
        """
        asked, of_file = set(map(id, changes)), dict[Path, list[AgentWrite]]()
        for change in self.changes:
            if id(change) in asked and change.place is not None:
                of_file.setdefault(change.path, []).append(change)
        left: list[Path] = []
        for path, theirs in of_file.items():
            whole = dataclasses.replace(theirs[0], after=theirs[-1].after)
            is_ours = all(one.after == other.before for one, other in pairwise(theirs))
            if (is_ours or overwrite) and await asyncio.to_thread(
                _bring_back, whole, sync=self._sync, overwrite=overwrite
            ):
                for change in theirs:
                    self.changes.discard(change)
                self.unsaved.pop(path, None)
            else:
                left.append(path)
        return left

    def _note(self, change: AgentWrite, text: str) -> None:
        self.changes.add(change)
        if change.path in self.unsaved:
            self.unsaved[change.path] = text
        if self._on_change is not None:
            self._on_change(change)

    def _read_now(self, roots: Roots, path: str, line: int, limit: int | None) -> str:
        place = roots.locate(path)
        wanted = LineRange(line, limit)
        with _explained(place.path), folder_of(place, roots) as folder:
            unsaved = self.unsaved.get(folder.path)
            if unsaved is not None:
                wanted.add(unsaved)
            else:
                self._read_from_disk(folder, wanted, whole=line <= 1 and limit is None)
        return wanted.text

    def _read_from_disk(self, folder: Folder, wanted: LineRange, *, whole: bool) -> None:
        with _opened(folder) as fd:
            found = os.fstat(fd)
            if found.st_nlink > 1 and not self._hard_links:
                raise RequestError.invalid_params(
                    "the file has other names (hard links), so it is not read; use Files(hard_links=True) to allow it",
                    path=str(folder.path),
                )
            if whole and found.st_size > self._limit:
                raise self._too_large(folder, found.st_size)
            for text in texts(iter(lambda: os.read(fd, CHUNK), b"")):
                if wanted.add(text):
                    return
                if wanted.length > self._limit:
                    raise self._too_large(folder, found.st_size)

    def _too_large(self, folder: Folder, size: int) -> RequestError:
        return RequestError.invalid_params(
            f"too much to read at once: at most {self._limit:,} bytes are allowed; read some of the lines",
            path=str(folder.path),
            size=size,
        )

    def _write_now(
        self, session: ServedSession, place: RootedPath, folder: Folder, text: str, message_id: str
    ) -> AgentWrite:
        before = self._before(folder)
        after = encode_like(before, text)
        replace(folder, after, sync=self._sync)
        return AgentWrite(folder.path, before, after, session.id, session.agent, place=place, message_id=message_id)

    def _before(self, folder: Folder) -> bytes | None:
        """Return the bytes before the write: for the journal, and to keep their encoding."""
        if folder.stat() is None:
            return None
        with _opened(folder) as fd:
            if (size := os.fstat(fd).st_size) > self._limit:
                problem = f"the file is too large to replace: {size:,} bytes, at most {self._limit:,} are allowed"
                raise RequestError.invalid_params(problem, path=str(folder.path))
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

        async with self._locks.setdefault(session, asyncio.Lock()):
            if first is not None:
                await first()
            # A thread cannot be stopped. A cancelled request waits for it, so that its write cannot come later.
            task = asyncio.create_task(done())
            try:
                await to_the_end(task)
            except asyncio.CancelledError:
                task.exception()  # marks it as retrieved: the request is cancelled, so nothing reads it
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


def _take_back(change: AgentWrite, place: RootedPath, content: bytes | None, *, sync: bool) -> None:
    """Restore the content before a change, or write other content instead."""
    with folder_of(place, Roots([place.root])) as folder:
        with _opened(folder) as fd:
            if _all_of(fd) != change.after:
                raise ValueError(f"{change.path} has changed since, so the write cannot be undone")
        if (content := change.before if content is None else content) is None:
            folder.remove(folder.name)
        else:
            replace(folder, content, sync=sync)


def _bring_back(change: AgentWrite, *, sync: bool, overwrite: bool) -> bool:
    """Restore the content before a change; returns False if the file has changed since."""
    assert change.place is not None
    try:
        with folder_of(change.place, Roots([change.place.root]), make=change.before is not None) as folder:
            found = folder.stat()
            if found is not None and not overwrite:
                known = [it for it in (change.after, change.before) if it is not None and len(it) == found.st_size]
                with _opened(folder) as fd:
                    if not known or _all_of(fd) not in known:
                        return False
            if change.before is not None:
                replace(folder, change.before, sync=sync)
            elif found is not None:
                folder.remove(folder.name)
    except FileNotFoundError:
        return change.before is None  # its folder is gone, and it with it
    except (OSError, RequestError):
        return False  # something else has its name now: a folder, a link, a pipe
    return True


_INVALID_PATH = {
    errno.EISDIR: "path names a folder, not a file",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ELOOP: "the file changed while it was being opened; try again",
    errno.ENAMETOOLONG: "a name in the path is too long",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.EINVAL: "invalid path for this file system",
    errno.ENXIO: "path does not name a regular file",
}


@contextmanager
def _explained(path: Path) -> Generator[None]:
    """Turn errors of the file system into errors of the protocol."""
    try:
        yield
    except NotText as error:
        raise RequestError.invalid_params(f"not a text file: {error}", path=str(path)) from error
    except FileNotFoundError as error:
        # The protocol's own text: agents recognise by it that a file does not exist yet.
        raise RequestError.not_found("Resource not found", path=str(path)) from error
    except OSError as error:
        if (why := _INVALID_PATH.get(error.errno or 0)) is not None:
            raise RequestError.invalid_params(why, path=str(path)) from error
        raise RequestError.internal(error.strerror or "the file system failed", path=str(path)) from error
