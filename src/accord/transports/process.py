"""An agent that is a process of ours: frames over its stdin and stdout, and nothing of it left when the link ends.

    transport = ProcessTransport(["gemini", "--acp"])
    await transport.start(receiver)
    ...
    await transport.close()

One task lives as long as the process. It waits for the first reason to end (we close; the process ends; it closes its
stdout; it no longer takes input), sees to it that all the process wrote is delivered, and goes down the ladder: close
stdin, wait, SIGTERM to the group, wait, SIGKILL to the group. Each step has a deadline, so leaving takes a bounded time
whatever the agent does. Should we be killed ourselves, a small process of ours (`guard`) does it in our place.

Children that leave the agent's group on purpose (daemons) are not followed. On Windows there are no such groups, nor a
guard: there the process itself is ended, not what it started.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accord.errors import ConnectionClosed, EndReason
from accord.jsonrpc.frames import LIMIT, FrameReader, joined
from accord.transports.base import HIGH_WATER, End, Receiver, Transport
from accord.transports.closing import to_the_end, within
from accord.transports.group import LEFT_BEHIND, ProcessGroup
from accord.transports.guard import Ward
from accord.transports.launch import Environment, Inherit, Pipes, environment, launch
from accord.transports.reading import Reader, open_reader
from accord.transports.stderr import StderrTail
from accord.transports.writing import Writer, open_writer

if TYPE_CHECKING:
    from pathlib import Path


class ProcessTransport(Transport):
    """Starts a command and speaks with it over its standard streams.

    `env` changes the environment it inherits (None leaves a variable out); `inherit_env` says what that is: all of
    ours, nothing, or certain names. `on_stderr` gets its stderr line by line; the tail of it is part of the `End`.
    `grace` is how long each step of ending it may take where `close` does not say.
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
        on_stderr: Callable[[str], None] | None = None,
        grace: float = 2.0,
    ) -> None:
        if isinstance(command, str) or not command:
            raise ValueError("a command is a list: the program and its arguments")
        self.name = f"process {shlex.join(command)}"
        self.pid: int | None = None
        """The command's process, once it was started."""
        self._command = list(command)
        self._cwd = cwd
        self._env = environment(env, inherit_env)
        self._frames = FrameReader(limit)
        self._high_water = high_water
        self._words = StderrTail(stderr_tail, on_stderr)
        self._grace = grace
        self._end: End | None = None
        self._life: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        with Pipes(self._command[0]) as pipes:
            self._ward = Ward(pipes.theirs[0])
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
        self._stdin: Writer = open_writer(stdin, receiver, self._high_water, lambda _: self._because("broken"))
        self._stdout: Reader = open_reader(stdout, self._read, lambda _: self._because("peer_closed"))
        self._stderr: Reader = open_reader(stderr, self._words.feed, lambda _: self._words.finish())
        self._life = loop.create_task(self._live(), name=f"{self.name} ({leader.pid})")

    def send(self, frames: Sequence[bytes]) -> None:
        if frames:
            self._stdin.write(joined(frames))

    @property
    def unsent(self) -> int:
        return self._stdin.unsent

    async def flush(self) -> None:
        await self._stdin.flush()

    def pause_reading(self) -> None:
        if not self._why.done():
            self._stdout.pause()

    def resume_reading(self) -> None:
        self._stdout.resume()

    async def close(self, grace: float | None = None) -> End:
        if self._life is not None:
            if grace is not None and not self._why.done():
                self._grace = grace
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
            await (self._end_it() if reason == "closed" else self._see_it_end(reason))
            await self._ward.release()
        except BaseException:
            self._group.abandon()
            raise
        finally:
            self._let_go()

    async def _end_it(self) -> None:
        self._stdout.resume()  # an agent that is stuck in writing could not end by itself
        await within(self._grace, self._stdin.flush())
        self._stdin.close()
        await self._group.end(self._grace)
        await self._last_words()
        self._ended("closed")

    async def _see_it_end(self, reason: EndReason) -> None:
        self._stdin.close()
        if await self._group.is_ending():
            reason = "process_ended"  # which says more than the silence that came before it
        await self._last_words()
        self._ended(reason)
        await self._group.end(self._grace)

    async def _last_words(self) -> None:
        """What the process wrote is in the pipes by now; a child of it may hold them open for ever."""
        self._stdout.drain()
        self._stderr.drain()
        if self._group.exited.is_set():
            await within(LEFT_BEHIND, self._silence())

    async def _silence(self) -> None:
        await self._stdout.ended.wait()
        await self._stderr.ended.wait()

    def _ended(self, reason: EndReason) -> None:
        self._stdout.close()
        if frames := self._frames.finish():
            self._receiver.received(frames)
        self._end = End(reason, _DETAILS.get(reason, ""), exit_code=self._group.exit_code, stderr=self._words.text)
        self._receiver.ended(self._end)

    def _let_go(self) -> None:
        """Whatever way it ended: nothing of ours is left, and the receiver knows."""
        self._ward.release_now()
        if self._end is None:
            self._ended("closed")
        self._stdin.close()
        self._stdout.close()
        self._stderr.close()
        self._words.finish()


_DETAILS: dict[EndReason, str] = {
    "peer_closed": "the agent closed its standard output",
    "broken": "the agent closed its standard input",
}
