"""One command that runs for an agent, and what it prints.

It leads a process group of its own, so that killing it kills what it started; the guard does so when we are killed
ourselves. Both its outputs are one pipe (or one pseudo-terminal), so they stay in order. The end of the command is the
end of its process: a child that it left behind may hold the pipe, and what that prints is still kept, until the
terminal is released.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from accord.schema import v1
from accord.services.terminals.output import OutputTail, rest_of_character
from accord.transports.closing import to_the_end
from accord.transports.group import ProcessGroup
from accord.transports.guard import Ward
from accord.transports.launch import launch
from accord.transports.reading import Reader, open_reader

GRACE = 2.0
"""Seconds between asking a command to end and killing it."""

# A terminal becomes the controlling one of the session whose leader opens it, so somebody has to open it inside.
_ON_A_TERMINAL = ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1']


class Terminal:
    """A command of an agent's: for displays as well as for the agent.

    terminals = accord.Terminals(on_open=show)

    async def show(session, terminal):
        async for text in terminal.follow():
            print(text, end="")
        print(terminal.exit_status)
    """

    def __init__(self, terminal_id: v1.TerminalId, command: Sequence[str], cwd: Path, limit: int) -> None:
        self.id = terminal_id
        self.command = list(command)
        self.cwd = cwd
        self.exit_status: v1.TerminalExitStatus | None = None
        """How the command ended; None while it runs."""
        self._tail = OutputTail(limit)
        self._news = asyncio.Event()
        self._exited = asyncio.Event()
        self._releasing: asyncio.Task[None] | None = None

    async def start(self, env: dict[str, str], *, pty: bool = False, folder: int | None = None) -> None:
        """Start it in `cwd`, which is also open as `folder` where the platform can.

        Raises ConnectionClosed, which says why in one line, when the command cannot be started."""
        ours, theirs, command = _terminal(self.command) if pty else (*os.pipe(), self.command)
        self._ward = Ward(theirs)
        try:
            leader = _launch(command, theirs, _way_to(self.cwd, folder), env)
        except BaseException:
            os.close(ours)
            await to_the_end(asyncio.create_task(self._ward.release()))
            raise
        finally:
            os.close(theirs)
        self.pid = leader.pid
        self._ward.leads(leader.pid)
        self._reader: Reader = open_reader(ours, self._printed, lambda _: self._over())
        self._group = ProcessGroup(leader, on_exit=self._ended)

    @property
    def text(self) -> str:
        """The output that is kept."""
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
        """The output from its beginning on as it comes, until the command and its pipe have ended.

        Who is slow misses what was dropped meanwhile; nothing waits for them.
        """
        position, decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            self._news.clear()
            data, begins = self._tail.read_from(position)
            if begins > position:
                decoder.reset()
                data = data[rest_of_character(data) :]
            position = self._tail.total
            if text := decoder.decode(data, self._tail.ended):
                yield text
            if self._tail.ended and position == self._tail.total:
                await self._exited.wait()  # a pipe may end a moment before its process
                return
            await self._news.wait()

    async def kill(self) -> None:
        """End the command and all that it started; what it printed stays."""
        await self._group.stop(GRACE)

    async def release(self) -> None:
        """End it all and let go of the pipe. Releasing twice is fine."""
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
        self._news.set()

    def _ended(self) -> None:
        """The process has ended; what it wrote is in the pipe by now."""
        if self.exit_status is None:
            self._reader.drain()
            self.exit_status = _status(self._group.exit_code)
            self._group.has_members()  # its number is noted as free at once, if it is
            self._exited.set()

    def _over(self) -> None:
        self._tail.ended = True
        self._news.set()


def _launch(command: Sequence[str], output: int, cwd: str | Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    # The null device: at a pipe, programs such as rg would read instead of searching.
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        return launch(command, (nothing, output, output), cwd=cwd, env=env)
    finally:
        os.close(nothing)


def _way_to(cwd: Path, folder: int | None) -> str | Path:
    """How the child finds its folder: by the descriptor that was checked, as its name may lead elsewhere by now."""
    if folder is not None and os.path.isdir(held := f"/proc/self/fd/{folder}"):  # noqa: PTH112
        return held
    return cwd  # macOS enters no folder by a descriptor's name


if sys.platform == "win32":

    def _terminal(command: Sequence[str]) -> tuple[int, int, list[str]]:
        raise NotImplementedError("pseudo-terminals are not supported on Windows; use pty=False")

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
