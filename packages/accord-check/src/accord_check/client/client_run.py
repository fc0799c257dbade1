"""Runs the scenarios against a client, and makes their report.

`check_by_hand` is for a client that a person starts, an editor for instance, which has our agent in its settings. Each
start of the agent plays the next scenario that was not played yet. Further prompts on the same connection play those
that need no other handshake, one a prompt; `/check NAME` chooses one.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from accord import ConnectionClosed
from accord.installation import PACKAGES
from accord.transports.launch import environment, launch
from accord.transports.process_group import ProcessGroup
from accord_check.agent.raw_connection import Blocked, Gone, Over, Unanswered
from accord_check.agent.scenario_context import Progress, RunResults, fault_of_checks
from accord_check.client.launch_command import AcceptedClient, launch_command
from accord_check.client.scenario_run import AgentScript, ClientSettings, ScenarioRun
from accord_check.client.scenarios import SCENARIOS, ClientScenario, Stage
from accord_check.report import Report

LAST_LINES = 4_000
"""The last bytes of the client's output, in which a message about it looks for a line."""

LAST_STEPS = 2.0
"""Seconds that the client has to end after SIGTERM."""


class ClientProcess:
    """A running client. Its output goes to a file, so that its amount does not matter."""

    def __init__(self, group: ProcessGroup, output: Path) -> None:
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
            await self._group.stop(LAST_STEPS)
            self._group.close()


VARIABLES = {"{agent}": "ACCORD_CHECK_AGENT", "{url}": "ACCORD_CHECK_URL", "{ws}": "ACCORD_CHECK_WS"}
"""The placeholders of a command line (the agent's command, its address over HTTP, and the one over WebSocket), and the
variables with the same values, for a client that is configured in another way.
"""


def can_serve() -> bool:
    """Whether the extra `http` is installed."""
    return all(find_spec(package) is not None for package, extra in PACKAGES.items() if extra == "http")


@asynccontextmanager
async def placeholders_for(
    results: ClientResults, folder: Path, arrived: Callable[[AcceptedClient], None], *, is_served: bool
) -> AsyncGenerator[dict[str, str]]:
    """Return the values of the placeholders: the agent's command, and if it `is_served`, its addresses.

    Raises AccordError if it is to be served without the extra `http`.
    """
    async with launch_command(folder, arrived) as agent:
        if not is_served:
            yield {"{agent}": str(agent)}
            return
        from accord_check.client.address import address  # only a client with a URL needs a server

        async with address(arrived) as served:
            try:
                yield {"{agent}": str(agent), "{url}": served.url, "{ws}": served.websocket}
            finally:
                results.add(served.requests.tally)


LAST_WORDS = 3.0
"""Seconds in which a client that has ended may leave its agent, by a process of its own."""


class ClientResults(RunResults):
    """The results of a run's scenarios so far."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__("client")
        self.settings = settings
        self.version = 1
        """The latest version that our agent speaks now."""
        self.starts = 0
        """How often the client has started the agent."""

    def lacks(self, version: int) -> bool:
        """Whether the client was offered this version, and spoke an earlier one."""
        return self.version == version == 2 and bool(self.spoken) and 2 not in self.spoken

    def add_start(self, run: ScenarioRun) -> None:
        """Add the results of one start of the agent."""
        run.judge.end()
        grown = self.recording.append(run.record)
        self.add(run.judge.tally, lambda it: replace(it, events=tuple(number + grown for number in it.events)))
        if run.judge.conversation.is_initialized:
            self.spoke(run.judge, run.version)


async def check_client(
    words: Sequence[str],
    settings: ClientSettings,
    *,
    only: Sequence[str] = (),
    trace: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run the scenarios of a profile against a client; with `only`, those of these names.

    `words` is the client's command line; `{agent}` in it is replaced by the agent's command, which is also the variable
    ACCORD_CHECK_AGENT; `{url}` and `{ws}` by its address, over HTTP and over WebSocket. The client is started once for
    each scenario, in a scratch folder. `trace` is the file for all conversations; it is written in any case.
    """
    results, blocked = ClientResults(settings), ""
    with tempfile.TemporaryDirectory(prefix="accord-check-", ignore_cleanup_errors=True) as made:
        folder = await asyncio.to_thread(Path(made).resolve)
        for scenario, version in _planned(settings, only):
            if results.lacks(version):
                continue
            results.version = version
            if progress is not None:
                progress(scenario.shows)
            try:
                await _ClientStart(results, scenario, folder).perform(words)
            except (Blocked, ConnectionClosed) as reason:
                blocked = str(reason)
                break
    if not blocked and results.spoken and not set(results.spoken) & set(settings.versions):
        blocked = f"the client does not speak version {settings.versions[-1]} of the protocol"
    return results.report(" ".join(words), settings.profile, blocked, trace)


def _planned(settings: ClientSettings, only: Sequence[str]) -> Iterator[tuple[ClientScenario, int]]:
    """The scenarios of a run, each with its version."""
    for version in settings.versions:
        for scenario in SCENARIOS:
            is_chosen = settings.profile in scenario.profiles and (not only or scenario.name in only)
            if is_chosen and version in scenario.versions:
                yield scenario, version


class _AgentStarts:
    """The starts of the agent by a client, each with the task that plays it."""

    def __init__(self, results: ClientResults) -> None:
        self._results = results
        self._runs: list[ScenarioRun] = []
        self._plays: list[asyncio.Task[None]] = []

    def _begin(
        self,
        transport: AcceptedClient,
        script: AgentScript,
        version: int,
        play: Callable[[ScenarioRun], Awaitable[None]],
    ) -> None:
        """Play a start of the agent, up to this version of the protocol."""
        run = ScenarioRun(transport, script, self._results, self._results.settings, version)
        self._results.starts += 1
        self._runs.append(run)

        async def played() -> None:
            await run.open()
            await play(run)

        self._plays.append(asyncio.create_task(played()))

    async def _end(self) -> None:
        """End the scenarios that still run, and add the results of all."""
        for run in self._runs:
            await run.close(1.0)
        for task in self._plays:
            task.cancel()
        for run in self._runs:
            self._results.add_start(run)


class _ClientStart(_AgentStarts):
    """One scenario: the client is started, and each start of the agent by it is played."""

    def __init__(self, results: ClientResults, scenario: ClientScenario, folder: Path) -> None:
        super().__init__(results)
        self._scenario = scenario
        self._private = folder / f"{scenario.name.replace(' ', '-')}-{results.version}"
        self._work = self._private / "work"
        self._work.mkdir(parents=True)
        self._arrived = asyncio.Event()
        self._process: ClientProcess | None = None

    async def perform(self, words: Sequence[str]) -> None:
        settings = self._results.settings
        is_served = any(place in word for word in words for place in ("{url}", "{ws}"))
        async with placeholders_for(self._results, self._private, self._arrive, is_served=is_served) as placeholders:
            variables = {
                **{VARIABLES[place]: given for place, given in placeholders.items()},
                "ACCORD_CHECK_SCENARIO": self._scenario.name,
                **settings.env,
            }
            command = [filled(word, placeholders) for word in from_here(words)]
            output, cwd = self._private / "output", settings.cwd or self._work
            process = self._process = ClientProcess.start(command, output, cwd, variables)
            try:
                await self._until_played(process)
                await self._until_ended(process)
            finally:
                await process.end()
                await self._end()

    async def _until_played(self, process: ClientProcess) -> None:
        """Wait until the scenario is over on each start of the agent, and the client has started one."""
        ends = asyncio.create_task(process.ended(3_600))
        arrives = asyncio.create_task(self._arrived.wait())
        try:
            await asyncio.wait(
                [ends, arrives], timeout=self._results.settings.start_within, return_when=asyncio.FIRST_COMPLETED
            )
            if not self._arrived.is_set():
                await asyncio.sleep(0.2)  # the socket may be read after the end of a process
            if not self._arrived.is_set():
                raise Blocked(self._no_start(process))
            while undone := [task for task in self._plays if not task.done()]:
                await asyncio.wait(undone)
        finally:
            ends.cancel()
            arrives.cancel()

    def _no_start(self, process: ClientProcess) -> str:
        said = f"; its last line: {process.last_words}" if process.last_words else ""
        code = "" if process.exit_code is None else f" (exit code {process.exit_code})"
        what = "put {agent} where its command line names the agent, or {url} or {ws} where it takes an address"
        return f"the client did not start the agent{code}; {what}{said}"

    async def _until_ended(self, process: ClientProcess) -> None:
        """Wait for the client to end, and judge how it left the agent."""
        settings = self._results.settings
        has_ended = await process.ended(settings.end_within)
        run = self._runs[-1]
        if self._scenario.ends:
            if has_ended and run.client.starts_process:
                # A client that ends closes both streams, in any order: the end of the input may still be on its way.
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(settings.end_within, LAST_WORDS)):
                        await run.client.input_over.wait()
            judge_end(run, has_ended=has_ended)
        else:
            name = "lint.client.ends-after-agent"
            wrong = f"the client still ran {settings.end_within:g} s after the end of the agent"
            if run.turn is not None:
                run.judged(name, has_ended or wrong, run.last)

    def _arrive(self, transport: AcceptedClient) -> None:
        self._begin(transport, self._scenario.script, self._results.version, self._play)
        self._arrived.set()

    async def _play(self, run: ScenarioRun) -> None:
        interrupt = self._process.interrupt if self._process is not None else None
        await play(self._results, self._scenario, run, Stage(self._work, interrupt))


async def play(results: ClientResults, scenario: ClientScenario, run: ScenarioRun, stage: Stage) -> None:
    """Play a scenario on one start of the agent. A fault of the client is a finding."""
    try:
        await scenario.play(run, stage)
    except Over:
        run.finish()
    except Unanswered as error:
        run.judged("lint.client.answers", str(error), error.frame)
        run.finish()
    except Gone as error:
        if run.turn is not None:
            run.judged("lint.client.stays-in-turn", f"{error} before its prompt was answered", run.last)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # a fault of the checks is not one of the client
        results.problems.append(fault_of_checks(scenario.name, error))
        run.finish()


def from_here(words: Sequence[str]) -> list[str]:
    """Return a command line that names the same files from another folder: those that exist here become absolute."""
    return [str(Path(word).absolute()) if os.sep in word and Path(word).exists() else word for word in words]


def filled(word: str, placeholders: Mapping[str, str]) -> str:
    """Return a word of a command line with its placeholders replaced."""
    for place, given in placeholders.items():
        word = word.replace(place, given)
    return word


def judge_end(run: ScenarioRun, *, has_ended: bool) -> None:
    """Judge that a client which has ended on its own has closed the agent's standard input."""
    name = "stdio.client-closes-stdin"
    if not run.client.starts_process:
        run.skip(name, "the client has connected to a URL")
        return
    if not has_ended:
        run.skip(name, "the client did not end by itself")
        return
    if run.end is None:
        run.skip(name, "a process of the client keeps the agent")
        return
    wrong = None if run.client.end_of_input else f"{run.end.detail}, and did not close its standard input first"
    run.judged(name, wrong, run.last)


Opened = Callable[[Mapping[str, str], Path], None]
"""Called with the value of each placeholder, and the folder for the client's sessions."""

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
    results = ClientResults(settings)
    with tempfile.TemporaryDirectory(prefix="accord-check-", ignore_cleanup_errors=True) as made:
        private = await asyncio.to_thread(Path(made).resolve)
        work = private / "work"
        work.mkdir()
        manual = _ManualRun(results, work, progress)
        async with placeholders_for(results, private, manual.arrive, is_served=can_serve()) as placeholders:
            opened(placeholders, work)
            await stop.wait()
            await manual.clear()
    blocked = "" if results.starts else "no client started the agent"
    return results.report("a client that was started by hand", settings.profile, blocked, trace)


class _ManualRun(_AgentStarts):
    """The scenarios that are still to be played, and the starts of the agent."""

    def __init__(self, results: ClientResults, work: Path, progress: Progress | None) -> None:
        super().__init__(results)
        self._stage, self._progress = Stage(work, None), progress
        self._unplayed = [scenario for scenario in SCENARIOS if results.settings.profile in scenario.profiles]

    def arrive(self, transport: AcceptedClient) -> None:
        scenario = self._unplayed[0] if self._unplayed else SCENARIOS[0]
        most = max(self._results.settings.versions)
        self._begin(transport, scenario.script, most, lambda run: self._play(run, scenario))

    async def clear(self) -> None:
        """Judge how each start of the agent has ended, and end those that still run."""
        for run in self._runs:
            judge_end(run, has_ended=run.end is not None)
        await self._end()

    async def _play(self, run: ScenarioRun, scenario: ClientScenario | None) -> None:
        """Play scenarios on one start of the agent, until it ends."""
        with suppress(Gone):
            while True:
                if scenario is None:
                    run.say(self._remaining_work())
                    run.finish()
                else:
                    if self._progress is not None:
                        self._progress(scenario.shows)
                    if scenario in self._unplayed:
                        self._unplayed.remove(scenario)
                    await play(self._results, scenario, run, self._stage)
                run.turn = None
                await run.until(lambda: run.turn is not None, self._results.settings.start_within)
                scenario = self._chosen(run)

    def _chosen(self, run: ScenarioRun) -> ClientScenario | None:
        """Return the scenario of another prompt: the one that it names, or the next without its own handshake."""
        name = run.text.partition("/check ")[2].strip()
        here = [scenario for scenario in SCENARIOS if scenario.script == AgentScript()]
        named = [scenario for scenario in here if scenario.name == name]
        return next(iter(named or [scenario for scenario in here if scenario in self._unplayed]), None)

    def _remaining_work(self) -> str:
        names = ", ".join(scenario.name for scenario in self._unplayed)
        more = f"Start the agent again for: {names}. " if names else "Every scenario was played. "
        return f"{more}Ctrl-C ends the checks, and prints the report. "
