"""The transport to an agent process that we start: frames over its stdin and stdout.

    transport = ProcessTransport(["gemini", "--acp"])
    await transport.start(receiver)
    ...
    await transport.close()

One task lives as long as the process. It waits for the first reason to end: we close the transport, the process ends,
it closes its stdout, or it no longer reads its stdin. Then the task delivers everything that the process has written,
and ends the process: close stdin, wait, SIGTERM to the group, wait, SIGKILL to the group. Each step has a deadline, so
closing takes a bounded time whatever the agent does. If our own process is killed, the guard (`guard`) ends the group.

Children that leave the agent's group on purpose (daemons) are found by a mark in their environment and ended as well,
on Linux and while our process lives (`EscapedProcesses`). On Windows a job replaces the group, the guard and the marks:
no child process can leave it, and it ends with us (`accord.windows.processes`).
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from accord._internal.tasks import to_the_end, within
from accord.errors import ConnectionClosed, EndReason
from accord.jsonrpc.line_frames import LIMIT, FrameReader, joined
from accord.transports import HIGH_WATER, End, Receiver, Transport
from accord.transports.descriptors import DescriptorReader, DescriptorWriter, open_reader, open_writer
from accord.transports.guard import OrphanGuard
from accord.transports.launch import Environment, Inherit, Pipes, environment, launch
from accord.transports.process_group import LEFT_BEHIND, EscapedProcesses, ProcessGroup

if TYPE_CHECKING:
    from pathlib import Path


class ProcessTransport(Transport):
    """Starts a command and exchanges frames over its standard streams.

    `inherit_env` is which of our environment variables the command gets: all (True), none (False), or the given names;
    `env` changes them (None removes a variable). `limit` is the maximum size of a frame, and `high_water` is the number
    of unsent bytes at which the receiver is paused. `on_stderr` is called with each line of stderr; the last
    `stderr_tail` bytes are part of the `End`. `grace` is the default of `close`: the seconds that each step may take.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Environment | None = None,
        inherit_env: Inherit = True,
        limit: int = LIMIT,
        high_water: int = HIGH_WATER,
        stderr_tail: int = 64 * 1024,
        on_stderr: Callable[[str], object] | None = None,
        grace: float = 2.0,
    ) -> None:
        if isinstance(command, str) or not command:
            raise ValueError("command must be a list that begins with the program")
        self.name = f"process {shlex.join(command)}"
        self.pid: int | None = None
        """The id of the command's process; None before the start."""
        self.before_cleanup: Callable[[], Awaitable[object]] | None = None
        """Awaited when the command has ended on its own, before its remaining child processes are ended."""
        self.limit_hit: Callable[[], Awaitable[str]] | None = None
        """Awaited when the command has ended on its own: returns the limit that ended it, in words, or nothing."""
        self._command = list(command)
        self._cwd = cwd
        self._escaped = EscapedProcesses()
        self._env = self._escaped.marked(environment(env, inherit_env))
        self._frames = FrameReader(limit)
        self._high_water = high_water
        self._stderr_tail = StderrTail(stderr_tail, on_stderr)
        self._grace = grace
        self._end: End | None = None
        self._life: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        with Pipes(self._command[0]) as pipes:
            self._ward = OrphanGuard(pipes.theirs[0])
            try:
                leader = launch(self._command, pipes.theirs, cwd=self._cwd, env=self._env)
            except ConnectionClosed:
                await to_the_end(asyncio.create_task(self._ward.release()))
                raise
            self.pid = leader.pid
            self._ward.leads(leader.pid)
            stdin, stdout, stderr = pipes.keep()
        loop = asyncio.get_running_loop()
        self._why: asyncio.Future[EndReason] = loop.create_future()
        self._group = ProcessGroup(leader, on_exit=lambda: self._because("process_ended"))
        self._stdin: DescriptorWriter = open_writer(
            stdin, receiver, self._high_water, lambda _: self._because("broken")
        )
        self._stdout: DescriptorReader = open_reader(stdout, self._read, lambda _: self._because("peer_closed"))
        self._stderr: DescriptorReader = open_reader(
            stderr, self._stderr_tail.feed, lambda _: self._stderr_tail.finish()
        )
        self._life = loop.create_task(self._live(), name=f"{self.name} ({leader.pid})")

    def send(self, frames: Sequence[bytes]) -> None:
        if frames:
            self._stdin.write(joined(frames))

    @property
    def unsent(self) -> int:
        return self._stdin.size

    async def flush(self) -> None:
        await self._stdin.flush()

    def started(self) -> list[int]:
        """Return the ids of the command's child processes that still run; only Linux reports them."""
        return [pid for pid in self._escaped.pids() if pid != self.pid]

    @property
    def stderr(self) -> str:
        if self._life is not None and not self._stderr_tail.is_telling:
            self._stderr.drain()  # the agent's output before an answer is part of it when the answer is here
        return self._stderr_tail.text

    def pause_reading(self) -> None:
        if not self._why.done():
            self._stdout.pause()

    def resume_reading(self) -> None:
        self._stdout.resume()

    async def close(self, grace: float | None = None) -> End:
        if self._life is not None:
            if grace is not None and not self._why.done():
                self._grace = grace
            elif grace == 0.0:
                self._group.kill()  # closing has begun, with a grace that the caller no longer gives
            self._because("closed")
            await to_the_end(self._life)
        return self._end or End("closed")

    def _because(self, reason: EndReason) -> None:
        if not self._why.done():
            self._why.set_result(reason)

    def _read(self, chunk: bytes) -> None:
        frames = self._frames.feed(chunk)
        if frames:
            self._receiver.received(frames)

    async def _live(self) -> None:
        try:
            reason = await self._why
            await (self._close_and_end() if reason == "closed" else self._end_after(reason))
            await self._escaped.end(self._grace)
            await self._ward.release()
        except BaseException:
            self._group.abandon()
            self._escaped.kill()
            raise
        finally:
            self._release()

    async def _close_and_end(self) -> None:
        if not self._grace:
            self._group.kill()  # before its input ends, which it could take as a reason to answer open requests
        self._stdout.resume()  # an agent that is blocked in a write could not end on its own
        await within(self._grace, self._stdin.flush())
        self._stdin.close()
        await self._observe()
        await self._group.end(self._grace)
        await self._read_the_rest()
        self._ended("closed")

    async def _end_after(self, reason: EndReason) -> None:
        self._stdin.close()
        if await self._group.is_ending():
            reason = "process_ended"  # more precise than the closed stream that came before it
        await self._read_the_rest()
        hit = await self.limit_hit() if self.limit_hit is not None and reason == "process_ended" else ""
        self._ended(reason, hit)
        await self._observe()
        await self._group.end(self._grace)

    async def _observe(self) -> None:
        if self.before_cleanup is not None and await within(self._grace, self._group.exited.wait()):
            await self.before_cleanup()

    async def _read_the_rest(self) -> None:
        """Read the process's remaining output. A child of the process may hold the pipes open endlessly."""
        self._stdout.drain()
        self._stderr.drain()
        if self._group.exited.is_set():
            await within(LEFT_BEHIND, self._streams_end())

    async def _streams_end(self) -> None:
        await self._stdout.ended.wait()
        await self._stderr.ended.wait()

    def _ended(self, reason: EndReason, detail: str = "") -> None:
        self._stdout.close()
        if frames := self._frames.finish():
            self._receiver.received(frames)
        self._end = End(
            reason,
            detail or _DETAILS.get(reason, ""),
            exit_code=self._group.exit_code,
            stderr=self._stderr_tail.text,
        )
        self._receiver.ended(self._end)

    def _release(self) -> None:
        """Release all resources and notify the receiver, however the process ended."""
        self._ward.release_now()
        if self._end is None:
            self._ended("closed")
        self._stdin.close()
        self._stdout.close()
        self._stderr.close()
        self._stderr_tail.finish()


_DETAILS: dict[EndReason, str] = {
    "peer_closed": "the agent closed its standard output",
    "broken": "the agent closed its standard input",
}


LONGEST_LINE = 64 * 1024
"""Bytes of a line; a longer one is passed on in parts, so that an endless line is not kept."""

_log = logging.getLogger("accord.transports")


class StderrTail:
    """Keeps the last `size` bytes and calls `on_line` with each line."""

    def __init__(self, size: int, on_line: Callable[[str], object] | None) -> None:
        self._size = size
        self._on_line = on_line
        self.is_telling = False
        """Whether `on_line` is being called; a chunk that arrived now would overtake earlier lines."""
        self._tail = bytearray()
        self._line = b""

    @property
    def text(self) -> str:
        """The bytes that are kept, as text."""
        return self._tail[-self._size :].decode(errors="replace") if self._size else ""

    def feed(self, chunk: bytes) -> None:
        """Add a chunk."""
        self._tail += chunk
        if len(self._tail) > 2 * self._size:  # cut rarely: each cut moves the kept bytes
            del self._tail[: -self._size or None]
        if self._on_line is not None:
            *lines, self._line = (self._line + chunk).split(b"\n")
            for line in lines:
                self._say(line)
            while len(self._line) > LONGEST_LINE:
                self._say(self._line[:LONGEST_LINE])
                self._line = self._line[LONGEST_LINE:]

    def finish(self) -> None:
        """Pass on the last line, even without its newline: nothing follows."""
        if self._line:
            line, self._line = self._line, b""
            self._say(line)

    def _say(self, line: bytes) -> None:
        assert self._on_line is not None
        self.is_telling = True
        try:
            self._on_line(line.rstrip(b"\r").decode(errors="replace"))
        except Exception:  # stderr must be read on, whatever the callback does
            _log.exception("the on_stderr callback failed")
        finally:
            self.is_telling = False
