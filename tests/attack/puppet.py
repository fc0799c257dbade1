"""Programs that do what the runner says: commands in, one JSON object a line, and answers out.

In a victim: `await obey({"measure": measure, ...})`. In the runner: `await puppet.ask("measure")`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from tests.attack.bounds import VICTIM_MEMORY, Bounds
from tests.posix import resource

ROOT = Path(__file__).parents[2]
TROUBLE = re.compile(
    r"Traceback|Exception ignored|never retrieved|was destroyed but|never awaited|Fatal|MemoryError|ResourceWarning"
)
SHOWN = 3_000
"""Characters of a log that a failure shows."""


async def obey(commands: Mapping[str, Callable[..., Awaitable[Any]]]) -> None:
    """Do what comes on standard input, each command in a task of its own, until standard input ends."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    async def carry_out(number: int, name: str, arguments: dict[str, Any]) -> None:
        try:
            said = {"id": number, "result": await commands[name](**arguments)}
        except Exception as error:
            said = {"id": number, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=sys.__stdout__, flush=True)  # a chat takes `sys.stdout` while it runs

    threading.Thread(target=read, daemon=True).start()
    async with asyncio.TaskGroup() as tasks:
        while line := await lines.get():
            tasks.create_task(carry_out(*json.loads(line)))


def environment(**more: str) -> dict[str, str]:
    """What programs of a run find: this package besides what they find anyway, and no token."""
    kept = {name: value for name, value in os.environ.items() if name != "ACCORD_TOKEN"}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **more}


def bounded(memory: int) -> Callable[[], None]:
    """Let a process have no more address space than this."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


class Puppet:
    """A program of this package that obeys."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())
        self._shown = 0

    @classmethod
    async def start(cls, name: str, module: str, *arguments: str, folder: Path, **more: str) -> Puppet:
        log = folder / f"{name}.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(**more),
                limit=16 * 1024 * 1024,
                preexec_fn=bounded(VICTIM_MEMORY),
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    async def ask(self, command: str, *, within: float = Bounds.turn, **arguments: Any) -> Any:
        """Its answer to a command; raises RuntimeError with what is wrong."""
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([number, command, arguments]).encode() + b"\n")
            async with asyncio.timeout(within):
                return await answered
        except (TimeoutError, ConnectionError) as error:
            raise RuntimeError(f"{self.name} did not answer to {command!r} within {within:.0f} s: {error!r}") from error
        finally:
            self._asked.pop(number, None)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            said = json.loads(line)
            if (answered := self._asked.get(said["id"])) is None or answered.done():
                continue
            if "error" in said:
                answered.set_exception(RuntimeError(f"{self.name}: {said['error']}"))
            else:
                answered.set_result(said["result"])
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(RuntimeError(f"{self.name} ended with exit code {await self._process.wait()}"))

    def troubles(self) -> list[str]:
        """What its log says of trouble since this was asked last."""
        with self.log.open(errors="replace") as log:
            log.seek(self._shown)
            text = log.read()
            self._shown = log.tell()
        found = TROUBLE.search(text)
        return [f"the log of the {self.name}: {text[found.start() :][:SHOWN]}"] if found else []

    async def end(self) -> None:
        if self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        await self._reading
