"""Runs the scenarios against a client, and makes the report of them.

`check_by_hand` does it with a client that a person starts, an editor for instance, which has our agent in its settings.
Each start of the agent plays the next scenario that was not played yet. Further prompts on the same connection play
those that need no other handshake, one a prompt; `/check NAME` chooses one.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from accord import ConnectionClosed
from accord.extras import PACKAGES
from accord_check.agent.raw_connection import Gone, Over, Recording, Unanswered
from accord_check.checks import CHECKS_OF_CLIENTS
from accord_check.client.client_process import Program
from accord_check.client.fake_agent import Part
from accord_check.client.launch_command import Arrival, door
from accord_check.client.scenario_run import ClientSettings, Played
from accord_check.client.scenarios import SCENARIOS, Scenario, Stage
from accord_check.finding import Finding, Side
from accord_check.passive.observer import Bench
from accord_check.report import Report, outcomes_of
from accord_check.trace_judge import peer_of

PLACES = ("{agent}", "{url}", "{ws}")
"""The agent's command, and its address over HTTP and over WebSocket."""

VARIABLES = {"{agent}": "ACCORD_CHECK_AGENT", "{url}": "ACCORD_CHECK_URL", "{ws}": "ACCORD_CHECK_WS"}
"""The variables that have the same, for a client that is configured in another way."""


def names_address(words: Sequence[str]) -> bool:
    """Whether this command line names the agent's address."""
    return any(place in word for word in words for place in PLACES[1:])


def can_serve() -> bool:
    """Whether the extra `http` is installed."""
    return all(find_spec(package) is not None for package, extra in PACKAGES.items() if extra == "http")


@asynccontextmanager
async def places_for(
    folder: Path, arrived: Callable[[Arrival], None], judged: Callable[[Bench], None], *, is_served: bool
) -> AsyncGenerator[dict[str, str]]:
    """What stands for the places: the agent's command, and if it `is_served`, its addresses.

    `judged` is told at the end what the HTTP requests have shown.

    Raises AccordError if it is to be served without the extra `http`.
    """
    async with door(folder, arrived) as agent:
        places = {"{agent}": str(agent)}
        if not is_served:
            yield places
            return
        from accord_check.client.address import address  # only a client with a URL needs a server

        async with address(arrived) as served:
            try:
                yield {**places, "{url}": served.url, "{ws}": served.websocket}
            finally:
                judged(served.requests.bench)


Progress = Callable[[str], None]
"""Is told which scenario begins."""


LAST_WORDS = 3.0
"""Seconds in which a client that has ended may leave its agent, by a process of its own."""


class Blocked(Exception):
    """The client cannot be judged: it does not start, or never starts the agent."""


class Run:
    """What the scenarios of a run have shown so far."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.recording = Recording()
        self.seen: Counter[tuple[str, Side]] = Counter()
        self.reasons: dict[str, str] = {}
        self.problems: list[str] = []
        self.peer = ""
        self.version = 1
        """The latest version that our agent speaks now."""
        self.spoken: set[int] = set()
        """The versions that were spoken."""
        self.starts = 0
        """How often the client has started the agent."""
        self._findings: dict[tuple[str, str, str], Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings, the same fault of two scenarios once."""
        return list(self._findings.values())

    def lacks(self, version: int) -> bool:
        """Whether the client was offered this version, and spoke an earlier one."""
        return self.version == version == 2 and bool(self.spoken) and 2 not in self.spoken

    def add_requests(self, bench: Bench) -> None:
        """Add what the HTTP requests of one scenario have shown."""
        self.seen += bench.seen
        for finding in bench.findings:
            self._findings.setdefault((finding.id, finding.side, finding.message), finding)

    def add(self, played: Played) -> None:
        """Add what one start of the agent has shown."""
        played.judge.end()
        grown = self.recording.append(played.record)
        self.seen += played.judge.bench.seen
        for finding in played.judge.findings:
            moved = replace(finding, events=tuple(number + grown for number in finding.events))
            self._findings.setdefault((finding.id, finding.side, finding.message), moved)
        for name, reason in played.reasons.items():
            self.reasons.setdefault(name, reason)
        if played.judge.conversation.is_initialized:
            self.spoken.add(played.version)
        self.peer = self.peer or peer_of(played.judge, "client")


async def check_client(
    words: Sequence[str],
    settings: ClientSettings,
    *,
    only: Sequence[str] = (),
    trace: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run the scenarios of a profile against a client; with `only`, those of these names.

    `words` is the client's command line; `{agent}` in it stands for the agent's command, which is also the variable
    ACCORD_CHECK_AGENT; `{url}` and `{ws}` stand for its address, over HTTP and over WebSocket. The client is started
    once for each scenario, in a scratch folder. `trace` is the file for all conversations; it is written in any case.
    """
    began = time.monotonic()
    run, blocked = Run(settings), ""
    with tempfile.TemporaryDirectory(prefix="accord-check-", ignore_cleanup_errors=True) as made:
        folder = await asyncio.to_thread(Path(made).resolve)
        for scenario, version in _planned(settings, only):
            if run.lacks(version):
                continue
            run.version = version
            if progress is not None:
                progress(scenario.shows)
            try:
                await _Performance(run, scenario, folder).perform(words)
            except (Blocked, ConnectionClosed) as reason:
                blocked = str(reason)
                break
    report = report_of(" ".join(words), run)
    if not blocked and run.spoken.isdisjoint(settings.versions) and run.spoken:
        blocked = f"the client does not speak version {settings.versions[-1]} of the protocol"
    report.blocked, report.seconds = blocked, time.monotonic() - began
    if trace is not None:
        run.recording.write(trace)
        report.trace = str(trace)
    return report


def _planned(settings: ClientSettings, only: Sequence[str]) -> Iterator[tuple[Scenario, int]]:
    """The scenarios of a run, each with its version."""
    for version in settings.versions:
        for scenario in SCENARIOS:
            is_chosen = settings.profile in scenario.profiles and (not only or scenario.name in only)
            if is_chosen and version in scenario.versions:
                yield scenario, version


class _Performance:
    """One scenario: the client is started, and each start of the agent by it is played."""

    def __init__(self, run: Run, scenario: Scenario, folder: Path) -> None:
        self._run, self._scenario = run, scenario
        self._private = folder / f"{scenario.name.replace(' ', '-')}-{run.version}"
        self._work = self._private / "work"
        self._work.mkdir(parents=True)
        self._played: list[Played] = []
        self._plays: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()
        self._program: Program | None = None

    async def perform(self, words: Sequence[str]) -> None:
        settings = self._run.settings
        is_served = names_address(words)
        async with places_for(self._private, self._arrive, self._run.add_requests, is_served=is_served) as places:
            variables = {
                **{VARIABLES[place]: given for place, given in places.items()},
                "ACCORD_CHECK_SCENARIO": self._scenario.name,
                **settings.env,
            }
            program = self._program = await Program.start(
                from_here(words), places, settings.cwd or self._work, variables
            )
            try:
                await self._until_played(program)
                await self._until_ended(program)
            finally:
                await program.end()
                for played in self._played:
                    await played.close(1.0)
                for play in self._plays:
                    play.cancel()
                for played in self._played:
                    self._run.add(played)

    async def _until_played(self, program: Program) -> None:
        """Wait until the scenario is over on each start of the agent, and the client has started one."""
        ends = asyncio.create_task(program.ended(3_600))
        arrives = asyncio.create_task(self._arrived.wait())
        try:
            await asyncio.wait(
                [ends, arrives], timeout=self._run.settings.start_within, return_when=asyncio.FIRST_COMPLETED
            )
            if not self._arrived.is_set():
                await asyncio.sleep(0.2)  # the socket may be read after the end of a process
            if not self._arrived.is_set():
                raise Blocked(self._no_start(program))
            while undone := [play for play in self._plays if not play.done()]:
                await asyncio.wait(undone)
        finally:
            ends.cancel()
            arrives.cancel()

    def _no_start(self, program: Program) -> str:
        said = f"; its last line: {program.last_words}" if program.last_words else ""
        code = "" if program.exit_code is None else f" (exit code {program.exit_code})"
        what = f"put {PLACES[0]} where its command line names the agent, or {{url}} or {{ws}} where it takes an address"
        return f"the client did not start the agent{code}; {what}{said}"

    async def _until_ended(self, program: Program) -> None:
        """Give the client its time to end, and judge how it left the agent."""
        settings = self._run.settings
        has_ended = await program.ended(settings.end_within)
        played = self._played[-1]
        if self._scenario.ends:
            if has_ended and played.arrival.starts_process:
                # A client that ends closes both streams, in any order: the end of the input may still be on its way.
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(settings.end_within, LAST_WORDS)):
                        await played.arrival.input_over.wait()
            judge_end(played, has_ended=has_ended)
        else:
            name = "lint.client.ends-after-agent"
            wrong = f"the client still ran {settings.end_within:g} s after the end of the agent"
            if played.turn is not None:
                played.judged(name, None if has_ended else wrong, played.last)

    def _arrive(self, transport: Arrival) -> None:
        played = Played(transport, self._scenario.part, self._run.settings, self._run.version)
        self._run.starts += 1
        self._played.append(played)
        self._plays.append(asyncio.create_task(self._play(played)))
        self._arrived.set()

    async def _play(self, played: Played) -> None:
        interrupt = self._program.interrupt if self._program is not None else None
        await played.open()
        await play(self._run, self._scenario, played, Stage(self._work, interrupt))


async def play(run: Run, scenario: Scenario, played: Played, stage: Stage) -> None:
    """Play a scenario on one start of the agent. What the client does wrong is a finding."""
    try:
        await scenario.play(played, stage)
    except Over:
        played.finish()
    except Unanswered as error:
        played.judged("lint.client.answers", str(error), error.frame)
        played.finish()
    except Gone as error:
        if played.turn is not None:
            played.judged("lint.client.stays-in-turn", f"{error} before its prompt was answered", played.last)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # a fault of the checks is not one of the client
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        run.problems.append(f"in the scenario {scenario.name!r}: {type(error).__name__}: {error} ({where})")
        played.finish()


def from_here(words: Sequence[str]) -> list[str]:
    """A command line that names the same files from another folder: those that exist here become absolute."""
    return [str(Path(word).absolute()) if os.sep in word and Path(word).exists() else word for word in words]


def judge_end(played: Played, *, has_ended: bool) -> None:
    """Judge that a client which has ended by itself has closed the agent's standard input."""
    name = "stdio.client-closes-stdin"
    if not played.arrival.starts_process:
        played.skip(name, "the client has connected to a URL")
        return
    if not has_ended:
        played.skip(name, "the client did not end by itself")
        return
    if played.end is None:
        played.skip(name, "a process of the client keeps the agent")
        return
    wrong = None if played.arrival.end_of_input else f"{played.end.detail}, and did not close its standard input first"
    played.judged(name, wrong, played.last)


def report_of(subject: str, run: Run) -> Report:
    """The report on a client."""
    found = [finding for finding in run.findings if finding.side == "client"]
    report = Report(subject, outcomes_of(CHECKS_OF_CLIENTS, ("client",), run.seen, found, run.reasons), peer=run.peer)
    report.problems, report.profile = run.problems, run.settings.profile
    report.versions = tuple(sorted(run.spoken))
    report.version = min(run.spoken, default=1 if run.peer or run.seen else None)
    return report


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
