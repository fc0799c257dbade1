"""Runs commands for agents on the user's machine: `terminal/*`.

    Client(terminals=True)                            the same as `accord.Terminals()`
    Client(terminals=Terminals(on_open=show))         displays commands while they run

A command begins in a folder of the session, but is not confined to it. A client that lends terminals lends the whole
user account, as far as permissions (`PermissionPolicy`) allow.

The command leads its own process group, so killing it also kills its child processes; the guard does this if our own
process is killed. Standard output and standard error are one pipe (or one pseudo-terminal), so they stay in order. The
command ends when its process ends. A child that is still running may hold the pipe open; its output is kept until the
terminal is released.

The end of the output is kept in constant memory. Cuts fall between characters: a cut at the front drops the rest of a
character, and an incomplete character at the end is left out until it is complete.
"""

from __future__ import annotations

import asyncio
import codecs
import inspect
import os
import re
import secrets
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from accord._internal.tasks import log, to_the_end
from accord.engine.handlers import Handlers
from accord.errors import ConnectionClosed, RequestError
from accord.project.confined import opened
from accord.schema import v1
from accord.services.service import ServedSession, Service, SessionOf
from accord.transports.descriptors import DescriptorReader, open_reader
from accord.transports.guard import OrphanGuard
from accord.transports.launch import Inherit, environment, launch, program_file
from accord.transports.process_group import ProcessGroup

LONGEST_CHARACTER = 4

OUTPUT_CHUNK = 16 * 1024
"""Bytes that small chunks are joined to, so that each does not cost an object."""


class OutputTail:
    """The last `limit` bytes of a stream.

    >>> tail = OutputTail(4)
    >>> tail.add("aüü".encode())
    >>> tail.text(), tail.truncated
    ('üü', True)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytearray] = deque()
        self._size = 0
        self.total = 0
        """Bytes of the whole stream so far."""
        self.ended = False
        """Whether the stream has ended, so that an incomplete character at the end stays incomplete."""

    @property
    def truncated(self) -> bool:
        """Whether some of the stream was dropped."""
        return self.total > self._limit

    def add(self, chunk: bytes) -> None:
        """Append a chunk, and drop the oldest bytes beyond the limit."""
        if self._chunks and len(self._chunks[-1]) + len(chunk) <= OUTPUT_CHUNK:
            self._chunks[-1] += chunk  # a command that prints single bytes must not cost one object per byte
        else:
            self._chunks.append(bytearray(chunk))
        self._size += len(chunk)
        self.total += len(chunk)
        # The first chunk stays whole and is cut when it is read.
        while self._chunks and self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())

    def text(self) -> str:
        """The end of the stream, at most `limit` bytes in UTF-8."""
        data = self._since(self.total - self._limit)
        text = self._decoded(data, cut=self.truncated)
        if len(text) > self._limit // LONGEST_CHARACTER and len(encoded := text.encode()) > self._limit:
            text = self._decoded(
                encoded[len(encoded) - self._limit :], cut=True
            )  # replacement characters are longer than invalid bytes
        return text

    def read_from(self, position: int) -> tuple[bytes, int]:
        """Return the kept bytes from `position`, and where they begin: later, if some were dropped."""
        begins = max(position, self.total - self._size)
        return self._since(begins), begins

    def _since(self, position: int) -> bytes:
        """Return the kept bytes from this position; reads only the chunks that it needs."""
        missing = self.total - max(position, self.total - self._size)
        wanted: list[bytearray] = []
        for chunk in reversed(self._chunks):
            if missing <= 0:
                break
            wanted.append(chunk[-missing:])
            missing -= len(chunk)
        return b"".join(reversed(wanted))

    def _decoded(self, data: bytes, *, cut: bool) -> str:
        if cut:
            data = data[rest_of_character(data) :]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(data, self.ended)


def rest_of_character(data: bytes) -> int:
    """Number of bytes at the beginning that continue an earlier character."""
    for index, byte in enumerate(data[: LONGEST_CHARACTER - 1]):
        if byte & 0b1100_0000 != 0b1000_0000:
            return index
    return min(len(data), LONGEST_CHARACTER - 1)


HAS_PTY = sys.platform != "win32"
"""Whether commands can run at a pseudo-terminal."""

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

# A terminal becomes the controlling terminal of the session whose leader opens it, so the new session must open it.
_ON_A_TERMINAL = ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1']


def ending_of(code: int | None, signal: str | None) -> str:
    """Describe how a command ended."""
    if signal:
        return f"ended by {signal[:40]}"
    return "ended" if code is None else f"exit code {code}"


class Terminal:
    """A command that runs for an agent; displays can follow its output.

    terminals = accord.Terminals(on_open=show)

    async def show(session, terminal):
        async for text in terminal.follow():
            print(text, end="")
        print(terminal.exit_status)
    """

    def __init__(self, terminal_id: v1.TerminalId, command: Sequence[str], cwd: Path, limit: int) -> None:
        self.id = terminal_id
        self.command = list(command)
        """The program and its arguments."""
        self.cwd = cwd
        """The folder in which it runs."""
        self.exit_status: v1.TerminalExitStatus | None = None
        """How the command ended; None while it runs."""
        self._tail = OutputTail(limit)
        self._changed = asyncio.Event()
        self._exited = asyncio.Event()
        self._releasing: asyncio.Task[None] | None = None

    async def start(self, env: dict[str, str], *, pty: bool = False, folder: int | None = None) -> None:
        """Start the command in `cwd`; `folder` is the descriptor of `cwd`, if the platform has them.

        Raises ConnectionClosed, which explains in one line why the command cannot be started.
        """
        ours, theirs, command = _terminal(self.command) if pty else (*os.pipe(), self.command)
        self._ward = OrphanGuard(theirs)
        try:
            leader = _launch(command, theirs, _path_to(self.cwd, folder), env)
        except BaseException:
            os.close(ours)
            await to_the_end(asyncio.create_task(self._ward.release()))
            raise
        finally:
            os.close(theirs)
        self.pid = leader.pid
        self._ward.leads(leader.pid)
        self._reader: DescriptorReader = open_reader(ours, self._printed, lambda _: self._over())
        self._group = ProcessGroup(leader, on_exit=self._ended)

    @property
    def text(self) -> str:
        """The kept output; its end if it was too long."""
        return self._tail.text()

    @property
    def truncated(self) -> bool:
        """Whether some of the output was dropped."""
        return self._tail.truncated

    async def wait(self) -> v1.TerminalExitStatus:
        """Wait for the end of the command."""
        await self._exited.wait()
        assert self.exit_status is not None
        return self.exit_status

    async def follow(self) -> AsyncIterator[str]:
        """Iterate over the output from its beginning, as it arrives, until the command has ended and its pipe is
        closed.

        A slow reader misses output that was dropped meanwhile; the command never waits for a reader.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for data, is_whole in self.follow_bytes():
            if is_whole:
                decoder.reset()
            if text := decoder.decode(data[rest_of_character(data) :] if is_whole else data):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text

    async def follow_bytes(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Iterate over the output as bytes, as it arrives, until the command has ended and its pipe is closed.

        Each chunk comes with whether it replaces all before it, because output between them was dropped.
        """
        position = 0
        while True:
            self._changed.clear()
            data, begins = self._tail.read_from(position)
            is_whole, position = begins > position, self._tail.total
            if data:
                yield data, is_whole
            if self._tail.ended and position == self._tail.total:
                await self._exited.wait()  # a pipe may close a moment before its process ends
                return
            await self._changed.wait()

    async def kill(self) -> None:
        """End the command and all its child processes. Its output is kept."""
        await self._group.stop(GRACE)

    async def release(self) -> None:
        """End the command and close its pipe. Releasing twice is fine."""
        if self._releasing is None:
            self._releasing = asyncio.create_task(self._release(), name=f"release {self.id}")
        await to_the_end(self._releasing)

    async def _release(self) -> None:
        try:
            await self.kill()
        finally:
            self._group.abandon()
            self._ended()
            self._reader.close()
            self._over()
            await self._ward.release()

    def _printed(self, chunk: bytes) -> None:
        self._tail.add(chunk)
        self._changed.set()

    def _ended(self) -> None:
        """The process has ended, so all of its output is in the pipe."""
        if self.exit_status is None:
            self._reader.drain()
            self.exit_status = _status(self._group.exit_code)
            self._group.has_members()  # notes at once whether the group is empty and its number free
            self._exited.set()

    def _over(self) -> None:
        self._tail.ended = True
        self._changed.set()


def _launch(command: Sequence[str], output: int, cwd: str | Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    # Standard input is the null device: with a pipe, programs such as rg would read it instead of searching.
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        return launch(command, (null, output, output), cwd=cwd, env=env)
    finally:
        os.close(null)


def _path_to(cwd: Path, folder: int | None) -> str | Path:
    """Return the path by which the child enters its folder: the checked descriptor, since the name may lead elsewhere
    by now.
    """
    if folder is not None and os.path.isdir(held := f"/proc/self/fd/{folder}"):  # noqa: PTH112
        return held
    return cwd  # macOS cannot enter a folder by its descriptor


if sys.platform == "win32":

    def _terminal(command: Sequence[str]) -> tuple[int, int, list[str]]:
        raise NotImplementedError("`Terminals` refuses pty=True on Windows")

else:

    def _terminal(command: Sequence[str]) -> tuple[int, int, list[str]]:
        ours, theirs = os.openpty()
        return ours, theirs, [*_ON_A_TERMINAL, os.ttyname(theirs), *command]


def _status(code: int | None) -> v1.TerminalExitStatus:
    if code is None:
        return v1.TerminalExitStatus()
    if code >= 0 or sys.platform == "win32":
        return v1.TerminalExitStatus(exit_code=code & 0xFFFFFFFF)
    return v1.TerminalExitStatus(signal=_signal_name(-code))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"SIG{number}"


LIMIT = 1024 * 1024
"""Bytes of output that are kept by default."""

MOST = 8 * 1024 * 1024
"""Bytes of output that an agent may request to keep, so that an answer fits into any frame."""

PER_SESSION = 128
"""Terminals that a session may have at the same time."""

IN_ALL = 256
"""Terminals that all sessions of one service may have at the same time: each takes two or three descriptors."""

PATIENCE = 1.0
"""Seconds that displays have to show the last output after a session has ended."""

_SHELL = ("cmd.exe", "/d", "/c") if sys.platform == "win32" else ("/bin/sh", "-c")
_FOR_A_SHELL = re.compile(r"[\s|&;<>()$`\\\"'*?\[\]#~=%!{}]")


class Terminals(Service):
    """Lends terminals.

    `on_open(session, terminal)` is called with each new terminal, to display it. `limit` is the number of bytes of
    output that are kept if the agent requests no other. With `pty`, commands run at a pseudo-terminal: they print in
    colours and without buffering. `inherit_env` is which variables of our own environment commands get: all (True),
    none (False), or the given names. A session may have `per_session` terminals, all sessions together `in_all`.

    Several agents send a shell line as a command without arguments (`npm test && git diff`). It runs in a shell; with
    `shell=False` it is the name of a program.
    """

    def __init__(
        self,
        *,
        on_open: Callable[[ServedSession, Terminal], Any] | None = None,
        limit: int = LIMIT,
        pty: bool = False,
        shell: bool = True,
        inherit_env: Inherit = True,
        per_session: int = PER_SESSION,
        in_all: int | None = None,
    ) -> None:
        if pty and not HAS_PTY:
            raise NotImplementedError("'pty' must be False on Windows, got True: commands run over pipes there")
        self._on_open = on_open
        self._limit = limit
        self._pty = pty
        self._shell = shell
        self._inherit = inherit_env
        self._per_session = per_session
        self._in_all = _most_in_all() if in_all is None else in_all
        self._ending: set[Terminal] = set()
        self._open: MutableMapping[ServedSession, dict[v1.TerminalId, Terminal]] = WeakKeyDictionary()
        self._displays: MutableMapping[ServedSession, set[asyncio.Task[Any]]] = WeakKeyDictionary()

    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """Declare `terminal`."""
        return msgspec.structs.replace(capabilities, terminal=True)

    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle `terminal/*`."""

        def named(request: Any) -> Terminal:
            return self.find(session_of(request.session_id), request.terminal_id)

        @handlers.on(v1.CreateTerminalRequest)
        async def create(request: v1.CreateTerminalRequest) -> v1.CreateTerminalResponse:
            return v1.CreateTerminalResponse((await self.create(session_of(request.session_id), request)).id)

        @handlers.on(v1.TerminalOutputRequest)
        def output(request: v1.TerminalOutputRequest) -> v1.TerminalOutputResponse:
            terminal = named(request)
            return v1.TerminalOutputResponse(terminal.text, terminal.truncated, terminal.exit_status)

        @handlers.on(v1.WaitForTerminalExitRequest)
        async def wait(request: v1.WaitForTerminalExitRequest) -> v1.WaitForTerminalExitResponse:
            status = await named(request).wait()
            return v1.WaitForTerminalExitResponse(status.exit_code, status.signal)

        @handlers.on(v1.KillTerminalRequest)
        async def kill(request: v1.KillTerminalRequest) -> v1.KillTerminalResponse:
            await named(request).kill()
            return v1.KillTerminalResponse()

        @handlers.on(v1.ReleaseTerminalRequest)
        async def release(request: v1.ReleaseTerminalRequest) -> v1.ReleaseTerminalResponse:
            terminal = named(request)
            del self._open[session_of(request.session_id)][terminal.id]
            await self._end(terminal)
            return v1.ReleaseTerminalResponse()

    async def create(self, session: ServedSession, request: v1.CreateTerminalRequest) -> Terminal:
        """Run a command for a session."""
        self._must_have_room(session)
        with _folder(session, request.cwd) as (cwd, folder):
            limit = self._limit if request.output_byte_limit is None else min(request.output_byte_limit, MOST)
            terminal_id = v1.TerminalId(f"term_{secrets.token_hex(8)}")
            terminal = Terminal(terminal_id, self._command(request, cwd), cwd, limit)
            env = environment({variable.name: variable.value for variable in request.env}, self._inherit)
            if self._pty:
                env.setdefault("TERM", "xterm-256color")
            try:
                await terminal.start(env, pty=self._pty, folder=folder)
            except ConnectionClosed as error:
                raise RequestError.invalid_params(str(error), command=request.command[:1000]) from error
        self._open.setdefault(session, {})[terminal.id] = terminal
        self._show(session, terminal)
        return terminal

    def _must_have_room(self, session: ServedSession) -> None:
        in_session, in_all = len(self._open.get(session, ())), sum(map(len, self._open.values())) + len(self._ending)
        for count, most, where in (
            (in_session, self._per_session, "this session (per_session)"),
            (in_all, self._in_all, "all sessions (in_all)"),
        ):
            if count >= most:
                raise RequestError.invalid_request(
                    f"too many terminals: {count} are not released, at most {most} are allowed in {where}; "
                    "release some with terminal/release",
                    limit=most,
                )

    def find(self, session: ServedSession, terminal_id: v1.TerminalId) -> Terminal:
        """A terminal of the session; raises RequestError if it does not exist or was released."""
        terminal = self._open.get(session, {}).get(terminal_id)
        if terminal is None:
            raise RequestError.not_found("no such terminal", terminalId=terminal_id)
        return terminal

    async def release(self, session: ServedSession) -> None:
        """End the terminals of a session that has ended."""
        async with asyncio.TaskGroup() as tasks:
            for terminal in self._open.pop(session, {}).values():
                tasks.create_task(self._end(terminal))
        if displays := self._displays.pop(session, None):
            _, stuck = await asyncio.wait(displays, timeout=PATIENCE)
            for display in stuck:
                display.cancel()

    async def _end(self, terminal: Terminal) -> None:
        """Release a terminal, which still counts until its command has ended."""
        self._ending.add(terminal)
        try:
            await terminal.release()
        finally:
            self._ending.discard(terminal)

    def _command(self, request: v1.CreateTerminalRequest, cwd: Path) -> list[str]:
        line = request.command
        if request.args or not self._shell or not _FOR_A_SHELL.search(line):
            return [line, *request.args]
        if program_file(line) or os.path.isfile(cwd / line):  # noqa: PTH113  a path with spaces; unlike pathlib, accepts any length
            return [line]
        return [*_SHELL, line]

    def _show(self, session: ServedSession, terminal: Terminal) -> None:
        if self._on_open is None:
            return
        shown = self._on_open(session, terminal)
        if inspect.iscoroutine(shown):
            display = asyncio.create_task(shown, name=f"display of {terminal.id}")
            of_session = self._displays.setdefault(session, set())
            of_session.add(display)
            display.add_done_callback(of_session.discard)
            display.add_done_callback(_shown)


@contextmanager
def _folder(session: ServedSession, wanted: str | None) -> Generator[tuple[Path, int | None]]:
    """Open the folder in which a command begins, and hold it open."""
    place = session.roots.locate(wanted or session.cwd)
    with ExitStack() as held:
        try:
            found = held.enter_context(opened(place, session.roots))
        except OSError as error:
            raise RequestError.not_found("cwd is not an existing folder", path=str(place.path)) from error
        yield found


def _most_in_all() -> int:
    """The default of `in_all`: a quarter of the files that the process may open."""
    if sys.platform == "win32":
        return IN_ALL
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return IN_ALL if most == resource.RLIM_INFINITY else max(1, min(IN_ALL, most // 4))


def _shown(display: asyncio.Task[Any]) -> None:
    if not display.cancelled() and (error := display.exception()) is not None:
        log.error("the coroutine of on_open failed", exc_info=error)
