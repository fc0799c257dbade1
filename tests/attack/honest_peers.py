"""Clients that do what clients should, and check every answer.

A peer visits its agent again and again: it connects, opens a session, makes some turns, loads the session on another
connection, and leaves. What it may find is a full house, before it is connected. Everything else is a problem.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

import accord
from tests.attack.bounds import Bounds
from tests.attack.honest_agent import chunk

Target: TypeAlias = "accord.Agent | str | list[str]"

KNOCK_AGAIN = 0.2
"""Seconds until a client that found no room tries again."""

THINK = 0.1
"""Seconds between two turns of a peer, so that honest work leaves the machine to others."""

NAME = "ada lovelace"


class Peers:
    """Honest clients of these targets, one each, in the event loop that made them."""

    def __init__(self, targets: Sequence[Target], seed: int) -> None:
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []
        self._targets = list(targets)
        self._chance = random.Random(seed)
        self._name = f"{os.getpid()}.{id(self):x}"
        self._numbers = count()
        self._welcome = asyncio.Event()
        self._visiting = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def work(self) -> None:
        """Visit all targets, while it is allowed, until this is cancelled."""
        with tempfile.TemporaryDirectory(prefix="honest-") as folder:
            async with asyncio.TaskGroup() as tasks:
                for target in self._targets:
                    tasks.create_task(self._keep_visiting(target, Path(folder)))

    def begin(self) -> None:
        self._welcome.set()

    async def rest(self) -> None:
        """Let everybody finish and leave."""
        self._welcome.clear()
        await self._quiet.wait()

    async def _keep_visiting(self, target: Target, folder: Path) -> None:
        while True:
            await self._welcome.wait()
            self._visiting += 1
            self._quiet.clear()
            try:
                async with asyncio.timeout(Bounds.turn):
                    await self._visit(target, folder)
            except Exception as error:
                self.problems.append(f"an honest peer of {shown(target)}: {type(error).__name__}: {error}"[:1000])
                await asyncio.sleep(KNOCK_AGAIN)
            finally:
                self._visiting -= 1
                if not self._visiting:
                    self._quiet.set()

    async def _visit(self, target: Target, folder: Path) -> None:
        said: list[str] = []
        async with self._connected(target) as remote:
            session = await remote.new_session(folder)
            for _ in range(self._chance.randint(2, 5)):
                said += [await self._turn(session, folder)]
                await asyncio.sleep(THINK)
            if self._chance.random() < 0.5:
                await session.close()
        if self._chance.random() < 0.5 and remote.capabilities.sessions.load:
            async with self._connected(target) as again:
                loaded = await again.load(session.id, folder)
                history = "".join(message.text for message in loaded.state.messages if message.speaker == "agent")
                self._check("the history of a session", history, "".join(said))
                await self._turn(loaded, folder)
        self.done["visits"] += 1

    @asynccontextmanager
    async def _connected(self, target: Target) -> AsyncIterator[accord.RemoteAgent]:
        client = accord.Client(files=True, permissions=True, elicitation=lambda _: {"name": NAME})
        while True:
            connecting = accord.connect(target, client=client, timeout=Bounds.turn)
            try:
                remote = await connecting.__aenter__()
            except accord.ConnectionClosed:  # no room: attackers have filled the server
                self.done["found no room"] += 1
                await asyncio.sleep(KNOCK_AGAIN)
                continue
            try:
                yield remote
            finally:
                await connecting.__aexit__(None, None, None)
            return

    async def _turn(self, session: accord.RemoteSession, folder: Path) -> str:
        """Make a turn; what the agent has to have said in it."""
        mark = f"{self._name}-{next(self._numbers)}"
        kind = self._chance.choice([*["count"] * 5, "permit", "file", "form", "cancel"])
        prompt, expected = self._script(kind, mark, folder)
        reply = session.prompt(prompt)
        texts: list[str] = []
        async for text in reply.iter_text():
            texts.append(text)
            if kind == "cancel":
                reply.request_cancel()
        outcome = await reply
        self._check(prompt, "".join(texts), expected)
        self._check(prompt, outcome.stop_reason, "cancelled" if kind == "cancel" else "end_turn")
        self.done["turns"] += 1
        self.done["updates"] += len(texts)
        return expected

    def _script(self, kind: str, mark: str, folder: Path) -> tuple[str, str]:
        """A prompt, and what the agent has to answer."""
        match kind:
            case "count":
                number, size = self._chance.choice([(1, 100), (30, 1000), (200, 100), (10, 20_000)])
                text = "".join(chunk(mark, reached, size) for reached in range(number))
                return f"count {mark} {number} {size}", text
            case "permit":
                return f"permit {mark}", f"{mark} allowed"
            case "file":
                return f"file {mark} {folder / mark}", mark
            case "form":
                return f"form {mark}", f"{mark} {NAME}"
            case _:
                return f"wait {mark}", mark

    def _check(self, what: str, seen: str, expected: str) -> None:
        if seen != expected:
            same = next((at for at, (one, other) in enumerate(zip(seen, expected, strict=False)) if one != other), 0)
            raise AssertionError(
                f"{what}: {len(seen)} characters instead of {len(expected)}, which differ from {same} on: "
                f"{seen[same:][:100]!r} instead of {expected[same:][:100]!r}"
            )


def shown(target: Target) -> str:
    return target if isinstance(target, str) else target[-1] if isinstance(target, list) else "an agent in memory"
