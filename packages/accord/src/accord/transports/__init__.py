"""Transports move frames in both directions until they end, once; they know nothing of requests or of ACP.

A `Transport` pushes arriving frames into one `Receiver`, from the event loop's own callbacks and without a task:

    start(receiver)   ->  received([frame, ...])     any number of times, in order, never re-entrantly
                          paused() / resumed()       our own output: past the high-water mark, and below it again
                          ended(End(...))            exactly once, after the last frame

In the other direction `send` queues frames and never waits. To wait for room, use `paused`/`resumed` or await `flush`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from accord.errors import ConnectionClosed, EndReason
from accord.jsonrpc.line_frames import Oversized

if TYPE_CHECKING:
    from pathlib import Path

    from accord.transports.launch import Inherit


HIGH_WATER = 64 * 1024
"""Bytes of waiting output at which `paused()` is called; at a quarter of it `resumed()` follows.

As much as a pipe holds. With 1 MiB, the waiting output leaves the processor's caches, and updates take a quarter more
time.
"""


class End(msgspec.Struct, frozen=True):
    """Why a connection ended, as far as its transport knows."""

    reason: EndReason
    detail: str = ""
    exit_code: int | None = None
    stderr: str = ""

    def error(self) -> ConnectionClosed:
        """A new exception for a waiting request: shared ones would collect tracebacks."""
        return ConnectionClosed(self.reason, self.detail, exit_code=self.exit_code, stderr=self.stderr)


class Receiver(Protocol):
    """The consumer of a transport's frames. Its methods must not raise."""

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        """Take the frames of one read, in the order of the wire."""
        ...

    def paused(self) -> None:
        """Note that more output is waiting than the high-water mark allows."""
        ...

    def resumed(self) -> None:
        """Note that there is room for output again."""
        ...

    def ended(self, end: End) -> None:
        """Note that no more frames follow. If only the input has ended, answers can still be sent."""
        ...


class Transport(ABC):
    """One connection to the other side."""

    name: str
    """The name in errors and traces: `stdio`, `process gemini --acp`, `memory`."""

    why = ""
    """The reason to send when the connection is closed, on transports that carry one."""

    @abstractmethod
    async def start(self, receiver: Receiver) -> None:
        """Open the connection. Raises ConnectionClosed if that fails, also for an OSError."""

    @abstractmethod
    def send(self, frames: Sequence[bytes]) -> None:
        """Queue these frames, in this order. Never waits or raises; after the end they are dropped."""

    @property
    @abstractmethod
    def unsent(self) -> int:
        """The number of bytes of output that wait."""

    @abstractmethod
    async def flush(self) -> None:
        """Wait until all output is written, or can no longer be written."""

    @property
    def stderr(self) -> str:
        """Return the end of the other side's standard error so far; empty unless it is our process."""
        return ""

    @abstractmethod
    def pause_reading(self) -> None:
        """Stop reading, so that the other side must wait. Frames that were read already still arrive."""

    @abstractmethod
    def resume_reading(self) -> None:
        """Read again."""

    @abstractmethod
    async def close(self, grace: float = 2.0) -> End:
        """Close the connection: flush while the other side reads, then close. Each step takes about `grace` at most.

        Idempotent: a second call, also at the same time, waits for the first. A cancellation of the caller does not
        leave it half done. Returns how the link ended; `ended()` has been called by then.
        """


# `Target`: the location of an agent, and how to connect to it, as often as needed.


class Target(ABC):
    """Opens connections to one agent: `accord.connect` makes it from a command or a URL, and plug-ins from a name."""

    name: str
    """The agent's command or address, as errors show it."""

    is_here = True
    """Whether the agent runs on this machine, so that a path means the same file to it and to us."""

    way_out = "standard output"
    """The stream that the agent closes to end a connection, as errors call it."""

    @property
    def program(self) -> str:
        """The agent's identity, whatever name it reports: remembered answers for one program apply to no other."""
        return f"{self.__class__.__module__}.{self.__class__.__qualname__} {self.name}"

    @property
    def failure(self) -> Exception | None:
        """Return why the agent could not serve the last connection, if the target knows it; None otherwise."""
        return None

    @abstractmethod
    def dial(self) -> Transport:
        """Return a transport for a new connection, not yet open."""

    async def release(self) -> None:  # noqa: B027
        """Free the resources of connecting; no more connections will be opened."""


class CommandTarget(Target):
    """An agent that is started as a process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str | None] | None = None,
        inherit: Inherit = True,
        on_stderr: Callable[[str], object] | None = None,
    ) -> None:
        if not command or not all(isinstance(cast("object", word), str | os.PathLike) for word in command):
            raise ValueError(f"command must be a list of words, the program first, got {list(command)!r}")
        self.command = [os.fspath(word) for word in command]
        """The program and its arguments."""
        import shlex  # agents load this module and start no command

        self.name = shlex.join(self.command)
        self.cwd = cwd
        """The folder in which the process is started; None for ours."""
        self.env = dict(env or {})
        """Variables that differ from ours; None removes one."""
        self.inherit: Inherit = inherit
        """The variables of our environment that the process gets: all, none, or these names."""
        self._on_stderr = on_stderr

    @cached_property
    def program(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The program's real path, and a digest of the whole command, because an argument may be a secret."""
        import hashlib  # only for remembered answers; a connection needs none of these
        import json

        from accord.transports.launch import environment, program_file

        folder = os.path.realpath(self.cwd or ".")
        path = environment(self.env, self.inherit).get("PATH", os.defpath)
        named = os.path.join(folder, self.command[0]) if os.sep in self.command[0] else self.command[0]  # noqa: PTH118
        found = program_file(named, path=path) or named
        arguments = [_resolved(argument, folder) for argument in self.command[1:]]
        real = os.path.realpath(found)
        digest = hashlib.sha256(json.dumps([found, real, *arguments]).encode()).hexdigest()
        return f"{real} {digest[:32]}"

    def dial(self) -> Transport:
        from accord.transports.process_transport import ProcessTransport  # not for agents in memory or behind URLs

        return ProcessTransport(
            self.command, cwd=self.cwd, env=self.env, inherit_env=self.inherit, on_stderr=self._on_stderr
        )


def _resolved(argument: str, folder: str) -> str:
    """Return the real path of an argument that names a file, such as a script for an interpreter."""
    path = os.path.join(folder, argument)  # noqa: PTH118
    return os.path.realpath(path) if "\0" not in path and os.path.isfile(path) else argument  # noqa: PTH113
