"""`ClientProcess`: the client's process, which the checks start once for each scenario."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from accord.transports.descriptors import open_reader
from accord.transports.launch import environment, launch
from accord.transports.process_group import ProcessGroup

KEPT = 4_000
"""Bytes of the client's output that are kept, for a message about it."""

LAST_STEPS = 2.0
"""Seconds that the client has to end after SIGTERM."""


class ClientProcess:
    """A running client. Its output is read, so that it can write what it likes."""

    def __init__(self, group: ProcessGroup, output: int) -> None:
        self.was_ended = False
        """Whether the checks have ended it."""
        self._group = group
        self._said = b""
        self._reader = open_reader(output, self._take, lambda _: None)

    @classmethod
    async def start(
        cls, words: Sequence[str], placeholders: Mapping[str, str], cwd: Path, variables: Mapping[str, str]
    ) -> ClientProcess:
        """Start a client; `places` says what stands in its words for what. Raises ConnectionClosed if it fails."""
        command = [_filled(word, placeholders) for word in words]
        null, (reads, writes) = os.open(os.devnull, os.O_RDONLY), os.pipe()
        try:
            process = launch(command, (null, writes, writes), cwd=cwd, env=environment(variables))
        except BaseException:
            os.close(reads)
            raise
        finally:
            os.close(null)
            os.close(writes)
        return cls(ProcessGroup(process, on_exit=lambda: None), reads)

    @property
    def exit_code(self) -> int | None:
        return self._group.exit_code

    @property
    def last_words(self) -> str:
        """The last line that it printed."""
        self._reader.drain()
        lines = self._said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else ""

    def interrupt(self) -> None:
        """Interrupt all processes of the client, as a terminal does for Ctrl-C."""
        if self.exit_code is None:
            self._group.interrupt()

    async def ended(self, within: float) -> bool:
        """Wait until it has ended; returns whether it did."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._group.exited.wait()
        return self.exit_code is not None

    async def end(self) -> None:
        """End it, first gently. If it still runs, so do its children, which end with it."""
        if self.exit_code is None:
            self.was_ended = True
            await self._group.stop(LAST_STEPS)
            self._group.close()
        self._reader.close()

    def _take(self, chunk: bytes) -> None:
        self._said = (self._said + chunk)[-KEPT:]


def _filled(word: str, placeholders: Mapping[str, str]) -> str:
    for place, given in placeholders.items():
        word = word.replace(place, given)
    return word
