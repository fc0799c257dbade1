"""Checks a client that a person starts: an editor, for instance, which has our agent in its settings.

Each start of the agent plays the next scenario that was not played yet. Further prompts on the same connection play
those that need no other handshake, one a prompt; `/check NAME` chooses one.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from accord_check.agent.link import Gone
from accord_check.client.arrival import Arrival
from accord_check.client.part import Part
from accord_check.client.places import can_serve, places_for
from accord_check.client.played import Played
from accord_check.client.plays import Stage
from accord_check.client.run import Progress, Run, judge_end, play, report_of
from accord_check.client.scenarios import SCENARIOS, Scenario
from accord_check.client.settings import ClientSettings
from accord_check.report.report import Report

Opened = Callable[[Mapping[str, str], Path], None]
"""Is told what stands for each place (`{agent}`, `{url}`, `{ws}`), and the folder for the client's sessions."""

BY_HAND = ClientSettings(start_within=3_600, asks_within=120, end_within=60)
"""The settings for a client that waits for its user."""


async def check_by_hand(
    settings: ClientSettings,
    stop: asyncio.Event,
    opened: Opened,
    *,
    trace: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Be the agent of a client that is started by hand, until `stop` is set; returns the report."""
    began = time.monotonic()
    run = Run(settings)
    with tempfile.TemporaryDirectory(prefix="accord-check-", ignore_cleanup_errors=True) as made:
        private = await asyncio.to_thread(Path(made).resolve)
        work = private / "work"
        work.mkdir()
        table = _Table(run, work, progress)
        async with places_for(private, table.arrive, run.add_requests, is_served=can_serve()) as places:
            opened(places, work)
            await stop.wait()
            await table.clear()
    report = report_of("a client that was started by hand", run)
    report.seconds = time.monotonic() - began
    report.blocked = "" if run.starts else "no client started the agent"
    if trace is not None:
        run.recording.write(trace)
        report.trace = str(trace)
    return report


class _Table:
    """The scenarios that are still to be played, and the starts of the agent."""

    def __init__(self, run: Run, work: Path, progress: Progress | None) -> None:
        self._run, self._stage, self._progress = run, Stage(work, None), progress
        self._left = [scenario for scenario in SCENARIOS if run.settings.profile in scenario.profiles]
        self._played: list[Played] = []
        self._sittings: list[asyncio.Task[None]] = []

    def arrive(self, transport: Arrival) -> None:
        scenario = self._left[0] if self._left else SCENARIOS[0]
        played = Played(transport, scenario.part, self._run.settings, max(self._run.settings.versions))
        self._run.starts += 1
        self._played.append(played)
        self._sittings.append(asyncio.create_task(self._sit(played, scenario)))

    async def clear(self) -> None:
        """Judge how each start of the agent has ended, and end those that still run."""
        for played in self._played:
            judge_end(played, has_ended=played.end is not None)
            await played.close(1.0)
        for sitting in self._sittings:
            sitting.cancel()
        for played in self._played:
            self._run.add(played)

    async def _sit(self, played: Played, scenario: Scenario | None) -> None:
        """Play scenarios on one start of the agent, until it ends."""
        await played.open()
        with suppress(Gone):
            while True:
                if scenario is None:
                    played.say(self._what_is_left())
                    played.finish()
                else:
                    if self._progress is not None:
                        self._progress(scenario.shows)
                    if scenario in self._left:
                        self._left.remove(scenario)
                    await play(self._run, scenario, played, self._stage)
                played.turn = None
                await played.until(lambda: played.turn is not None, self._run.settings.start_within)
                scenario = self._chosen(played)

    def _chosen(self, played: Played) -> Scenario | None:
        """The scenario of another prompt: the one that it names, or the next without a handshake of its own."""
        name = played.text.partition("/check ")[2].strip()
        here = [scenario for scenario in SCENARIOS if scenario.part == Part()]
        named = [scenario for scenario in here if scenario.name == name]
        return next(iter(named or [scenario for scenario in here if scenario in self._left]), None)

    def _what_is_left(self) -> str:
        names = ", ".join(scenario.name for scenario in self._left)
        more = f"Start the agent again for: {names}. " if names else "Every scenario was played. "
        return f"{more}Ctrl-C ends the checks, and prints the report. "
