"""`Door`: the command that a client starts as its agent, and the place where each start of it arrives."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from accord.check.client import relay
from accord.check.client.relayed import Relayed


@asynccontextmanager
async def door(folder: Path, arrived: Callable[[Relayed], None]) -> AsyncGenerator[Path]:
    """Make the agent's command in this folder, and call `arrived` for each start of it. Gives the command's file.

    It is one file without arguments, so that it fits into a command line of any form, quoted or not. `folder` must be
    private: who can write to the socket in it can play the client.
    """
    assert sys.platform != "win32"
    line = folder / "line"
    server = await asyncio.start_unix_server(
        lambda reader, writer: arrived(Relayed(reader, writer)), line, limit=relay.CHUNK * 2
    )
    command = folder / "agent"
    words = [sys.executable, "-I", relay.__file__, str(line)]
    command.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n", encoding="utf-8")
    command.chmod(0o700)
    try:
        yield command
    finally:
        server.close()
