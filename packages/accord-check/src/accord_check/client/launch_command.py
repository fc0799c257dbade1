"""The command that a client starts as its agent, and the transports over which each start of it arrives."""

from __future__ import annotations

import asyncio
import shlex
import signal
import subprocess
import sys
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from accord.callback_socket import TOKEN, CallbackSocket
from accord.transports import End, Receiver, Transport
from accord_check.client import relay
from accord_check.client.relay import HEAD


class AcceptedClient(Transport):
    """One start of the agent, or one connection to it."""

    name = "client"
    starts_process = True
    """Whether the client has started a process, which has a standard input and a standard error."""

    def __init__(self) -> None:
        self.end_of_input = False
        """Whether the client has closed the agent's standard input."""
        self.input_over = asyncio.Event()
        """Set when it has, or when the process has ended before."""

    def complain(self, data: bytes) -> None:
        """Write these bytes to the agent's standard error; a connection has none."""

    @abstractmethod
    def exit(self, code: int) -> None:
        """End the agent: its process with this exit code, or its connection."""


KILLED = "the client killed the agent"
CLOSED_INPUT = "the client closed the agent's standard input"


class RelayedClient(AcceptedClient):
    """One start of the agent by the client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self.signals: list[int] = []
        """The signals that the agent got, in order."""
        self.closed = asyncio.Event()
        """Set when `close` has ended the connection."""
        self._reader, self._writer = reader, writer
        self._partial = b""
        self._end: End | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        self._reading = asyncio.create_task(self._read(receiver))

    def send(self, frames: Sequence[bytes]) -> None:
        self.write(b"".join(frame + b"\n" for frame in frames))

    def write(self, data: bytes) -> None:
        """Write these bytes to the agent's standard output, as one piece."""
        self._parcel(b"o", data)

    def complain(self, data: bytes) -> None:
        """Write these bytes to the agent's standard error."""
        self._parcel(b"r", data)

    def exit(self, code: int) -> None:
        """End the agent's process with this exit code."""
        self._parcel(b"x", str(code).encode())

    @property
    def unsent(self) -> int:
        return 0

    async def flush(self) -> None:
        with suppress(OSError):
            await self._writer.drain()

    def pause_reading(self) -> None:
        """Ignore it: the checks want to see everything."""

    def resume_reading(self) -> None:
        """Read on, as before."""

    async def close(self, grace: float = 2.0) -> End:
        """End the agent's process, and wait until its relay is gone."""
        self.exit(0)
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(grace):
                await self._writer.drain()
                if self._reading is not None:
                    await asyncio.wait([self._reading])
        if self._reading is not None:
            self._reading.cancel()
        self._writer.close()
        self.closed.set()
        return self._end or End("closed")

    def _parcel(self, letter: bytes, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(HEAD.pack(letter, len(data)) + data)

    async def _read(self, receiver: Receiver) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                letter, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                self._take(letter, await self._reader.readexactly(size), receiver)
        self._ended(receiver, KILLED)
        self.input_over.set()

    def _take(self, letter: bytes, data: bytes, receiver: Receiver) -> None:
        match letter:
            case b"i":
                *lines, self._partial = (self._partial + data).split(b"\n")
                receiver.received([line for line in lines if line.strip()])
            case b"e":
                self.end_of_input = True
                self.input_over.set()
                self.exit(0)  # as an agent does
                self._ended(receiver, CLOSED_INPUT)
            case b"s":
                self.signals.append(int(data))
                if self.signals[-1] != signal.SIGINT:
                    self._ended(receiver, f"the client ended the agent with {signal.Signals(int(data)).name}")
            case _:
                self._ended(receiver, "the client closed the agent's standard output")

    def _ended(self, receiver: Receiver, detail: str) -> None:
        if self._end is None:
            self._end = End("peer_closed", detail)
            receiver.ended(self._end)


@asynccontextmanager
async def launch_command(folder: Path, arrived: Callable[[RelayedClient], None]) -> AsyncGenerator[Path]:
    """Make the agent's command in this folder, and call `arrived` for each start of it. Yields the command's file.

    It is one file without arguments, so that it fits into a command line of any form, quoted or not. `folder` must be
    private: the file has the token with which a program can play the client.
    """

    async def relayed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = RelayedClient(reader, writer)
        arrived(client)
        await client.closed.wait()

    async with CallbackSocket("client checks", limit=relay.CHUNK * 2) as listening:
        words, token = listening.command(relay.__file__), listening.add(relayed)
        yield command_file(folder, words, token, is_windows=sys.platform == "win32")


def command_file(folder: Path, words: Sequence[str], token: str, *, is_windows: bool) -> Path:
    """Write a file that runs this command with the token; Windows starts no script with a `#!` line."""
    if is_windows:
        command = folder / "agent.cmd"
        line = subprocess.list2cmdline(words).replace("%", "%%")
        command.write_text(f"@set {TOKEN}={token}\r\n@{line}\r\n", encoding="utf-8", newline="")
        return command
    command = folder / "agent"
    command.write_text(f"#!/bin/sh\nexport {TOKEN}={token}\nexec {shlex.join(words)}\n", encoding="utf-8")
    command.chmod(0o700)
    return command
