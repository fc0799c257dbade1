"""`Door`: the command that a client starts as its agent, and the place where each start of it arrives."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from accord._internal.tasks import Tasks
from accord.private_sockets.dialling import TOKEN
from accord.private_sockets.listening import PrivateSocket
from accord_check.client import relay
from accord_check.client.relayed import Relayed

LAST_STEPS = 2.0
"""Seconds in which the connections have to end."""


@asynccontextmanager
async def door(folder: Path, arrived: Callable[[Relayed], None]) -> AsyncGenerator[Path]:
    """Make the agent's command in this folder, and call `arrived` for each start of it. Gives the command's file.

    It is one file without arguments, so that it fits into a command line of any form, quoted or not. `folder` must be
    private: the file has the token with which a program can play the client.
    """

    async def relayed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrival = Relayed(reader, writer)
        arrived(arrival)
        await arrival.closed.wait()

    tasks = Tasks(asyncio.get_running_loop())
    listening = PrivateSocket("client checks", tasks, limit=relay.CHUNK * 2)
    try:
        yield command_file(
            folder,
            listening.command(relay.__file__),
            listening.add(relayed),
            is_windows=sys.platform == "win32",
        )
    finally:
        listening.close()
        await tasks.end(LAST_STEPS)


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
