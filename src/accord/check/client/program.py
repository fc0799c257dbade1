"""`Program`: the client's process, which the checks start once for each scenario."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from accord.errors import ConnectionClosed

KEPT = 4_000
"""Bytes of the client's output that are kept, for a message about it."""

LAST_STEPS = 2.0
"""Seconds that the client has to end after SIGTERM."""


class Program:
    """A running client. Its output is read, so that it can write what it likes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.was_ended = False
        """Whether the checks have ended it."""
        self._process = process
        self._said = b""
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, words: Sequence[str], places: Mapping[str, str], cwd: Path, variables: Mapping[str, str]
    ) -> Program:
        """Start a client; `places` says what stands in its words for what. Raises ConnectionClosed if it fails."""
        command = [_filled(word, places) for word in words]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**os.environ, **variables},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ConnectionClosed("died_at_start", f"cannot start {words[0]}: {error.strerror}") from error
        return cls(process)

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """The last line that it printed."""
        lines = self._said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else ""

    def interrupt(self) -> None:
        """Send SIGINT to all processes of the client, as a terminal does for Ctrl-C."""
        assert sys.platform != "win32"
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGINT)

    async def ended(self, within: float) -> bool:
        """Wait until it has ended; returns whether it did."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._process.wait()
        return self._process.returncode is not None

    async def end(self) -> None:
        """End it, first gently. If it still runs, so do its children, which end with it."""
        assert sys.platform != "win32"
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.returncode is None:
                self.was_ended = True
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                await self.ended(LAST_STEPS)
        self._reading.cancel()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(65_536):
            self._said = (self._said + data)[-KEPT:]


def _filled(word: str, places: Mapping[str, str]) -> str:
    for place, given in places.items():
        word = word.replace(place, given)
    return word
