"""Runs commands for agents on the user's machine: `terminal/*`.

    Client(terminals=True)                            the same as `accord.Terminals()`
    Client(terminals=Terminals(on_open=show))         displays commands while they run

A command begins in a folder of the session, but is not confined to it. A client that lends terminals lends the whole
user account, as far as permissions (`PermissionPolicy`) allow.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import secrets
import sys
from collections.abc import Callable, Generator, MutableMapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from accord._internal.tasks import log
from accord.engine.handlers import Handlers
from accord.errors import ConnectionClosed, RequestError
from accord.project.confined import opened
from accord.schema import v1
from accord.services.service import ServedSession, Service, SessionOf
from accord.services.terminals.terminal import HAS_PTY, Terminal
from accord.transports.launch import Inherit, environment, program_file

LIMIT = 1024 * 1024
"""Bytes of output that are kept by default."""

MOST = 8 * 1024 * 1024
"""Bytes of output that an agent may have kept, so that an answer fits into any frame."""

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
    output that are kept if the agent does not say. With `pty`, commands run at a pseudo-terminal: they print in colours
    and without buffering. `inherit_env` says which variables of our own environment commands get: all (True), none
    (False), or the given names. A session may have `per_session` terminals, all sessions together `in_all`.

    Several agents send a shell line as a command without arguments (`npm test && git diff`). It runs in a shell;
    with `shell=False` it is taken for the name of a program.
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
    """The folder in which a command begins, held open."""
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
