"""One command that runs for an agent, and its output.

The command leads its own process group, so killing it also kills what it started; the guard does this if our own
process is killed. Standard output and standard error are one pipe (or one pseudo-terminal), so they stay in order. The
command ends when its process ends. A child that is still running may hold the pipe open; its output is kept until the
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

from accord._internal.tasks import to_the_end
from accord.schema import v1
from accord.services.terminals.output import OutputTail, rest_of_character
from accord.transports.descriptors import DescriptorReader, open_reader
from accord.transports.guard import Ward
from accord.transports.launch import launch
from accord.transports.process_group import ProcessGroup

HAS_PTY = sys.platform != "win32"
"""Whether commands can run at a pseudo-terminal."""

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

# A terminal becomes the controlling terminal of the session whose leader opens it, so the new session must open it.
_ON_A_TERMINAL = ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1']


def ending_of(code: int | None, signal: str | None) -> str:
    """How a command ended, in words."""
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
        self._ward = Ward(theirs)
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
        """The output that is kept, its end if it was too long."""
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
        """The output from its beginning, as it arrives, until the command has ended and its pipe is closed.

        A slow reader misses output that was dropped meanwhile; the command never waits for a reader.
        """
        position, decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            self._changed.clear()
            data, begins = self._tail.read_from(position)
            if begins > position:
                decoder.reset()
                data = data[rest_of_character(data) :]
            position = self._tail.total
            if text := decoder.decode(data, self._tail.ended):
                yield text
            if self._tail.ended and position == self._tail.total:
                await self._exited.wait()  # a pipe may close a moment before its process ends
                return
            await self._changed.wait()

    async def follow_bytes(self) -> AsyncIterator[tuple[bytes, bool]]:
        """The output as bytes, as it arrives, until the command has ended and its pipe is closed.

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
        """End the command and everything that it started. Its output is kept."""
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
    """The path by which the child enters its folder: the checked descriptor, as the name may lead elsewhere by now."""
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
