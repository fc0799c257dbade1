"""`spawn_stdio_transport`: a program with its standard input and output as asyncio's streams."""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["DEFAULT_INHERITED_ENV_VARS", "default_environment", "spawn_stdio_transport"]

DEFAULT_INHERITED_ENV_VARS = (
    "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE SYSTEMROOT TEMP USERNAME "
    "USERPROFILE"
    if sys.platform == "win32"
    else "HOME LOGNAME PATH SHELL TERM USER"
).split()
"""The variables that a program inherits; others have to be given."""


def default_environment() -> dict[str, str]:
    """The environment that a program gets: the variables of `DEFAULT_INHERITED_ENV_VARS`, without shell functions."""
    inherited = ((name, os.environ.get(name)) for name in DEFAULT_INHERITED_ENV_VARS)
    return {name: value for name, value in inherited if value is not None and not value.startswith("()")}


@asynccontextmanager
async def spawn_stdio_transport(
    command: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: int | None = asyncio.subprocess.PIPE,
    limit: int | None = None,
    shutdown_timeout: float = 2.0,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.subprocess.Process]]:
    """Start a program; its output, its input and its process. At the end it is asked to stop, then made to.

    `env` is added to `default_environment()`. `shutdown_timeout` is how long each step of the end may take, in seconds.
    """
    options: dict[str, Any] = {} if limit is None else {"limit": limit}
    process = await asyncio.create_subprocess_exec(
        command,
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env={**default_environment(), **(env or {})},
        cwd=None if cwd is None else str(cwd),
        **options,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout, process.stdin, process
    finally:
        await asyncio.shield(_end(process, process.stdin, shutdown_timeout))


async def _end(process: asyncio.subprocess.Process, stdin: asyncio.StreamWriter, seconds: float) -> None:
    with suppress(OSError, RuntimeError):
        stdin.close()
        await asyncio.wait_for(stdin.wait_closed(), seconds)
    for stop in (None, process.terminate, process.kill):
        with suppress(ProcessLookupError):
            if stop is not None:
                stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)
            return
