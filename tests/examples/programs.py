"""An example that runs as a process: what it prints is read all the time, and a test waits for the words it needs."""

import asyncio
import os
import re
import sys
from contextlib import asynccontextmanager

from tests.examples.conftest import EXAMPLES
from tests.waiting import DEADLINE


class Program:
    """A running example."""

    def __init__(self, process):
        self.process = process
        self.out = ""
        self.err = ""
        self._changed = asyncio.Event()
        self._open = 2
        self._reading = [
            asyncio.create_task(self._read(process.stdout, "out")),
            asyncio.create_task(self._read(process.stderr, "err")),
        ]

    async def _read(self, stream, name):
        while data := await stream.read(65536):
            setattr(self, name, getattr(self, name) + data.decode(errors="replace"))
            self._tell()
        self._open -= 1
        self._tell()

    def _tell(self):
        self._changed.set()
        self._changed = asyncio.Event()

    async def printed(self, pattern, where="out"):
        """Wait until the program has printed this, on standard output or `err`; returns the match."""
        try:
            async with asyncio.timeout(DEADLINE):
                while not (found := re.search(pattern, getattr(self, where))):
                    assert self._open, "the program has ended"
                    await self._changed.wait()
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"no {pattern!r}: {error}\noutput: {self.out}\nstandard error: {self.err}") from error
        return found

    def write(self, line):
        self.process.stdin.write(f"{line}\n".encode())

    async def end(self):
        """Close standard input, and wait for the end; returns the exit code."""
        self.process.stdin.close()
        return await self.ended()

    async def ended(self):
        """Wait for the end; returns the exit code."""
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*self._reading)
            return await self.process.wait()


@asynccontextmanager
async def program(example, *arguments, env=None, cwd=None):
    """`async with program("chat_bot/bot.py", ...) as bot`: that example, killed at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-W", "error", str(EXAMPLES / example), *map(str, arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
    )
    running = Program(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()
