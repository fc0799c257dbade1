"""`accord` as a process that ends with its test."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager

from tests.waiting import DEADLINE

ACCORD = [sys.executable, "-m", "accord"]

UNKNOWN = {name: value for name, value in os.environ.items() if name != "ACCORD_TOKEN"}
"""An environment without a token."""


def accord_once(*arguments, **more):
    return subprocess.run(
        [*ACCORD, *arguments], check=False, capture_output=True, text=True, timeout=60, env={**UNKNOWN, **more}
    )


@asynccontextmanager
async def serving_process(*arguments, stderr=None, **more):
    """`accord serve`, and its URL."""
    process = await asyncio.create_subprocess_exec(
        *ACCORD, "serve", "--port", "0", *arguments, env={**UNKNOWN, **more}, stdout=subprocess.PIPE, stderr=stderr
    )
    try:
        async with asyncio.timeout(DEADLINE):
            line = (await process.stdout.readline()).decode()
            assert line, f"`accord serve` ended before it was ready, with status {await process.wait()}"
        yield process, re.search(r"https?://\S+", line)[0]  # what is done with it has deadlines of its own
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
