"""`ClientProcess`: the client's process, which the checks start once for each scenario."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from accord.transports.launch import environment, launch
from accord.transports.process_group import ProcessGroup

LAST_LINES = 4_000
"""The last bytes of the client's output, in which a message about it looks for a line."""

LAST_STEPS = 2.0
"""Seconds that the client has to end after SIGTERM."""


class ClientProcess:
    """A running client. Its output goes to a file, so that it can write what it likes."""

    def __init__(self, group: ProcessGroup, output: Path) -> None:
        self.was_ended = False
        """Whether the checks have ended it."""
        self._group, self._output = group, output

    @classmethod
    def start(cls, command: Sequence[str], output: Path, cwd: Path, variables: Mapping[str, str]) -> ClientProcess:
        """Start a client. Raises ConnectionClosed if it fails."""
        with Path(os.devnull).open("rb") as null, output.open("ab") as writes:
            streams = (null.fileno(), writes.fileno(), writes.fileno())
            process = launch(command, streams, cwd=cwd, env=environment(variables))
        return cls(ProcessGroup(process, on_exit=lambda: None), output)

    @property
    def exit_code(self) -> int | None:
        return self._group.exit_code

    @property
    def last_words(self) -> str:
        """The last line that it printed."""
        with self._output.open("rb") as file:
            file.seek(max(0, self._output.stat().st_size - LAST_LINES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
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
