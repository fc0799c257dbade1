"""Runs the suite in many short processes of pytest, and says after each how far it is.

    python -m tests                        what `make test` runs: a verdict in minutes
    python -m tests --part all             every test that needs nothing from outside
    python -m tests --part rest --share commit/5    a fifth of what `make test` leaves out, chosen by the commit
    python -m tests --marker links         the tests with a marker that is left out otherwise
    python -m tests packages/accord/tests/http -k quota    a folder or file, with options of pytest
    python -m tests --record [FILE ...]    run all of them, and write down what each test costs
    python -m tests --unsteady 20          run the tests of tests/unsteady.txt that often beside two busy loops

Each process runs a few files of one folder, and is a fork of this one, which has imported pytest. So the first verdict
comes after seconds, no process grows large, and no folder sees what another left behind. Tests that start no programs
come first: they find most faults.

A test that failed runs again, alone and twice, after all others. If it passes both times, the run passes and says
`unsteady: NAME`, and the name is added to tests/unsteady.txt, which may not grow. Mend such a test first.
"""

from __future__ import annotations

import argparse
import atexit
import compileall
import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

from tests import FOLDERS, ROOT, SOURCES, fork_server, set_environment
from tests.selection import function_of

COSTS = ROOT / "tests" / "costs.json"
REST = ROOT / "tests" / "rest.txt"
UNSTEADY = ROOT / "tests" / "unsteady.txt"

SHARD = 8.0
"""Seconds of tests that one process is given."""
UNKNOWN = 0.5
"""Seconds that a file takes of which nothing is recorded."""
MOST_AGAIN = 20
"""Failures that run again. More are no accident."""
MOST_OUTPUT = 12_000
"""Characters that are printed of what a process with failures said."""

CHEAP, CHEAP_WALL = 0.1, 1.0
"""Seconds of processor time, and of waiting, that any test of `make test` may take."""
CHEAPEST, CHEAPEST_WALL = 0.4, 2.0
"""The same for the cheapest case of a function that has no cheap one."""

MARKERS = ("agents", "all_links", "interop", "links", "release", "rust")
"""The markers of tests that run only when they are asked for; see conftest.py."""

WITH_LINKS = ("-m", "links or not links")
OPTIONS = ("-p", "tests.selection", "--color=no", "--no-header")

PLUGINS = ("accord_check.pytest_plugin", "pytest_asyncio.plugin", "pytest_timeout")
"""What pytest loads by its options in pyproject.toml: this process imports what they need, and its forks the rest."""

DEAR_IMPORTS = ("acp", "anthropic", "mcp", "openai", "accord_tools.tui.chat_app")
"""What many tests and their programs import, half a second to two seconds each: once, in this process."""

UNSTEADY_NOTE = """\
# Tests that failed once and passed alone twice. Mend them before you commit:
# `python -m tests --unsteady 20` runs them beside two busy loops.
"""


@dataclass(frozen=True)
class FileCost:
    """Seconds that the tests of a file take in each part, and whether they start programs."""

    fast: float = UNKNOWN
    rest: float = 0.0
    programs: bool = False

    def of(self, part: str) -> float:
        return {"fast": self.fast, "rest": self.rest}.get(part, self.fast + self.rest)


@dataclass
class Shard:
    """Files of one folder that one process runs."""

    room: str
    programs: bool
    files: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How the tests of a process of pytest fared."""

    rows: list[dict[str, Any]]
    output: str
    broken: bool
    """Whether pytest itself failed: it could not collect, or its process died."""

    def names(self, *outcomes: str) -> list[str]:
        return [row["id"] for row in self.rows if row.get("outcome") in outcomes]

    def unfinished(self) -> tuple[list[str], list[str]]:
        """Return the test that the process died in, and those that it never came to."""
        begun = {row["start"] for row in self.rows if "start" in row}
        ended = {row["id"] for row in self.rows if "id" in row}
        collected = [test for row in self.rows for test in row.get("collected", ())]
        return [it for it in begun if it not in ended], [it for it in collected if it not in begun]


class Pytest:
    """A process of pytest over some files: a fork of this one, which has imported pytest already, where forks exist."""

    def __init__(self, files: Sequence[str], options: Sequence[str] = (), only: Iterable[str] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="accord-suite-")
        self._outcomes, self._output = Path(self._folder.name, "outcomes"), Path(self._folder.name, "output")
        names = Path(self._folder.name, "only")
        names.write_text("\n".join(only), "utf-8")
        selection = ["--only", str(names)] if names.stat().st_size else []
        words = [*OPTIONS, "--outcomes", str(self._outcomes), *options, *selection, *files]
        self._process = PROCESSES.Process(target=become_pytest, args=(words, self._output))
        self._process.start()
        self.ended = self._process.sentinel

    def outcome(self) -> Outcome:
        """Wait for its end, and return how the tests fared."""
        self._process.join()
        with self._folder:
            rows = (
                [json.loads(it) for it in self._outcomes.read_text("utf-8").splitlines()]
                if self._outcomes.exists()
                else []
            )
            output = self._output.read_text("utf-8", "replace") if self._output.exists() else ""
        # 1 is a failed test, 5 is that no test was chosen.
        return Outcome(rows, output, self._process.exitcode not in (0, 1, 5))


PROCESSES: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


def become_fresh() -> None:
    """Start again as an interpreter with the environment that tests give to programs, and with room for others."""
    if fork_server.POSSIBLE and os.environ.pop(fork_server.ROOM, None) is None:
        set_environment()
        os.execve(sys.executable, [sys.executable, "-m", "tests", *sys.argv[1:]], fork_server.with_room(os.environ))


def import_all(dear: Sequence[str]) -> None:
    """Import what the processes of pytest and their programs need, but not the plugins: pytest rewrites them."""
    if fork_server.POSSIBLE:
        fork_server.warm()
    for name in ("pytest", "hypothesis", *PLUGINS, *dear):
        with contextlib.suppress(ImportError):  # of a package that is not installed
            importlib.import_module(name)
    for name in PLUGINS:
        del sys.modules[name]
    gc.collect()
    gc.freeze()


def become_pytest(words: list[str], output: Path) -> NoReturn:
    """Be what `python -m pytest` with these words would be, as the last thing of this process."""
    for target, stream in ((output, 1), (output, 2), (Path(os.devnull), 0)):
        descriptor = os.open(target, (os.O_WRONLY | os.O_CREAT | os.O_APPEND) if stream else os.O_RDONLY, 0o600)
        os.dup2(descriptor, stream)
        os.close(descriptor)
    atexit._clear()  # what the runner has to do at its end
    if fork_server.POSSIBLE:
        fork_server.prepare()
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for name in [it for it in sys.modules if it.startswith("tests.") and it != fork_server.__name__]:
        del sys.modules[name]
    import pytest

    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = str(Path(pytest.__file__).with_name("__main__.py"))
    sys.argv = [main.__file__, *words]
    code = pytest.main(words)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_pytest(files: Sequence[str], options: Sequence[str] = (), only: Iterable[str] = ()) -> Outcome:
    return Pytest(files, options, only).outcome()


def plan(
    files: Iterable[str], costs: dict[str, FileCost], part: str, divisor: int = 1, unknown: float = UNKNOWN
) -> list[Shard]:
    """Divide the files among processes: two short ones first, then those without programs, then the longest."""
    shards: list[Shard] = []
    by_room: dict[tuple[str, bool], list[tuple[float, str]]] = defaultdict(list)
    for file in files:
        cost = costs.get(file, FileCost(unknown))
        seconds = cost.of(part) / divisor
        if part != "rest" or seconds or file not in costs:  # a new test of a file without fast ones is fast
            by_room[str(Path(file).parent), cost.programs].append((seconds, file))
    for (room, programs), members in by_room.items():
        open_shards: list[Shard] = []
        for seconds, file in sorted(members, reverse=True):
            fits = (it for it in open_shards if it.seconds + seconds <= SHARD)
            shard = next(fits, None)
            if shard is None:
                open_shards.append(shard := Shard(room_of(room), programs))
            shard.files.append(file)
            shard.seconds += seconds
        shards += open_shards
    shards.sort(key=lambda it: (it.programs, -it.seconds))
    short = [it for it in shards if not it.programs and it.seconds < 2][:2]
    return [*short, *(it for it in shards if it not in short)]


class Run:
    """A run of the suite: its processes, what they report, and the verdict."""

    def __init__(self, options: Sequence[str], jobs: int, notes: Path) -> None:
        self._options, self._jobs, self._notes = options, jobs, notes
        self._began = time.monotonic()
        self._counts: dict[str, int] = defaultdict(int)
        self._failed: list[str] = []
        self._broken = False
        self._done = 0.0
        self._rooms: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        """Seconds of processor time, and of the wall, that the processes of each room took."""
        self._used = children_seconds()
        self.rows: list[dict[str, Any]] = []

    def run(self, shards: list[Shard]) -> bool:
        """Run them all, print the verdict, and return whether it is good."""
        total = sum(it.seconds for it in shards) or 1.0
        files = sum(len(it.files) for it in shards)
        print(f"{files} files in {len(shards)} processes, {self._jobs} at a time", flush=True)
        queue, running = list(shards), dict[Any, tuple[Pytest, Shard, list[Outcome], float]]()
        while queue or running:
            while queue and len(running) < self._jobs:
                shard = queue.pop(0)
                process = Pytest(shard.files, self._options)
                running[process.ended] = process, shard, [], time.monotonic()
            for ended in wait(list(running)):
                process, shard, outcomes, began = running.pop(ended)
                outcomes.append(process.outcome())
                died, unreached = outcomes[-1].unfinished()
                if died and unreached:  # the process died in a test: what comes after it runs in another
                    process = Pytest(shard.files, self._options, unreached)
                    running[process.ended] = process, shard, outcomes, began
                else:
                    self._done += shard.seconds
                    before, self._used = self._used, children_seconds()
                    self._rooms[shard.room][0] += self._used - before
                    self._rooms[shard.room][1] += time.monotonic() - began
                    self._report(shard, outcomes, self._done / total)
        return self._verdict()

    def _report(self, shard: Shard, outcomes: list[Outcome], share: float) -> None:
        counts: dict[str, int] = defaultdict(int)
        failed = []
        for outcome in outcomes:
            self.rows += outcome.rows
            failed += [*outcome.names("failed"), *outcome.unfinished()[0]]
            for row in outcome.rows:
                if "outcome" in row:
                    counts[row["outcome"]] += 1
        last = outcomes[-1]
        collected = not last.names("broken") and not (last.broken and not last.unfinished()[0])
        counts["failed"] = len(failed)
        for name, count in counts.items():
            self._counts[name] += count
        self._failed += failed
        words = ", ".join(f"{counts[it]} {it}" for it in ("passed", "failed", "skipped") if counts[it]) or "no tests"
        seconds = time.monotonic() - self._began
        print(f"[{100 * share:3.0f} % {seconds:4.0f} s] {shard.room} ({len(shard.files)} files): {words}", flush=True)
        if failed or not collected:
            self._broken |= not collected
            print(outcomes[0].output[-MOST_OUTPUT:], flush=True)

    def _verdict(self) -> bool:
        again = [] if len(self._failed) > MOST_AGAIN else list(self._failed)
        if again:
            print(f"Running the {len(again)} failed tests again, alone and twice ...", flush=True)
        unsteady = [test for test in again if passes_alone(test)]
        failed = [test for test in self._failed if test not in unsteady]
        for test in unsteady:
            print(f"unsteady: {test}")
        for test in failed:
            print(f"failed: {test}")
        if unsteady:
            write_unsteady(self._notes, {*unsteady_tests(self._notes), *unsteady})
        passed = self._counts["passed"] + len(unsteady)
        if not (passed or failed or self._counts["skipped"]):
            print("No test was chosen.")
            self._broken = True
        print("| room | processor s | wall s |\n|---|---:|---:|")
        for room, (cpu, wall) in sorted(self._rooms.items(), key=lambda it: -it[1][0]):
            print(f"| {room} | {cpu:.1f} | {wall:.1f} |")
        cpu = sum(cpu for cpu, _ in self._rooms.values())
        print(f"| all | {cpu:.1f} | {time.monotonic() - self._began:.1f} |")
        print(f"{passed} passed, {len(failed) + self._broken} failed, {self._counts['skipped']} skipped", flush=True)
        return not failed and not self._broken


def children_seconds() -> float:
    """Return the processor time of all processes that this one has waited for."""
    used = os.times()
    return used.children_user + used.children_system


def passes_alone(test: str, times: int = 2) -> bool:
    return all(
        run_pytest([test.partition("::")[0]], WITH_LINKS, [test]).names("passed", "skipped") == [test]
        for _ in range(times)
    )


def unsteady_tests(notes: Path = UNSTEADY) -> list[str]:
    lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def write_unsteady(notes: Path, tests: Iterable[str]) -> None:
    notes.write_text(UNSTEADY_NOTE + "".join(f"{it}\n" for it in sorted(tests)), "utf-8")


def run_unsteady(times: int) -> bool:
    """Run each unsteady test so often beside two busy loops; keep the names of those that fail."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    failing = []
    try:
        for test in unsteady_tests():
            steady = passes_alone(test, times)
            print(f"{'passed ' + str(times) + ' times' if steady else 'failed'}: {test}", flush=True)
            if not steady:
                failing.append(test)
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    write_unsteady(UNSTEADY, failing)
    return not failing


def record(rows: Iterable[dict[str, Any]]) -> None:
    """Write what each file of these rows costs, and which of its tests `make test` leaves out.

    What a shared fixture costs is divided among the tests of the file that use it. A function keeps its cheap cases;
    if it has none, it keeps its cheapest, unless that is dear, too.
    """
    fixtures: dict[tuple[str, str], float] = defaultdict(float)
    users: dict[tuple[str, str], int] = defaultdict(int)
    tests: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if "fixture" in row:
            fixtures[row["file"], row["fixture"]] += row["own"] + row["children"]
        elif "own" in row:
            tests[function_of(row["id"])].append(row)
            for name in row["fixtures"]:
                users[row["id"].partition("::")[0], name] += 1
    seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    left_out = []
    for function, cases in sorted(tests.items()):
        file = function.partition("::")[0]
        for case in cases:
            shared = sum(fixtures[file, it] / users[file, it] for it in case["fixtures"] if (file, it) in fixtures)
            case["cpu"] = max(0.0, case["own"] + case["children"] - case["shared"]) + shared
        base = [case for case in cases if not case.get("links")]
        keep = [it for it in base if it["cpu"] <= CHEAP and it["wall"] - it["cpu"] <= CHEAP_WALL]
        if not keep and base:
            cheapest = min(base, key=lambda it: it["cpu"] + it["wall"])
            if cheapest["cpu"] <= CHEAPEST and cheapest["wall"] - cheapest["cpu"] <= CHEAPEST_WALL:
                keep = [cheapest]
        kept = {case["id"] for case in keep}
        out = [case["id"] for case in base if case["id"] not in kept]
        if len(out) > 3 and len(out) > len(kept):
            left_out += [function, *(f"but {it}" for it in sorted(kept))]
        else:
            left_out += sorted(out)
        for case in base:
            seconds[file][case["id"] not in kept] += max(case["cpu"], min(case["wall"], 2 * case["cpu"] + 30))
            seconds[file][2] += case["children"]
    others = {file: cost for file, cost in recorded_costs().items() if file not in seconds and (ROOT / file).exists()}
    costs = others | {file: [*(round(it, 1) for it in its[:2]), its[2] > 0.1] for file, its in seconds.items()}
    rows = ",\n".join(f"  {json.dumps(file)}: {json.dumps(costs[file])}" for file in sorted(costs))
    COSTS.write_text(f"{{\n{rows}\n}}\n", "utf-8")
    left_out += (
        line
        for line in (REST.read_text("utf-8").splitlines() if REST.exists() else ())
        if line.removeprefix("but ").partition("::")[0] in others
    )
    note = "# What `make test` leaves out because cheaper tests show the same; made by `python -m tests --record`.\n"
    lines = sorted(left_out, key=lambda line: line.removeprefix("but "))
    REST.write_text(note + "".join(f"{it}\n" for it in lines), "utf-8")


def recorded_costs() -> dict[str, list[Any]]:
    """Return what is written down of each file's costs."""
    return json.loads(COSTS.read_text("utf-8")) if COSTS.exists() else {}


def room_of(folder: str) -> str:
    """Return the name of a folder of tests as a line shows it: `accord-tools cli`."""
    return " ".join(it for it in Path(folder).parts if it not in ("packages", "tests")) or "tests"


def with_marker(marker: str) -> list[Path]:
    """Return the files with tests that have this marker, and the folders whose conftest gives it."""
    files = (it for folder in FOLDERS for it in folder.rglob("*.py"))
    found = [it for it in files if f"mark.{marker}" in it.read_text("utf-8")]
    return [it.parent if it.name == "conftest.py" else it for it in found if it.parent not in FOLDERS]


def share_of(words: str | None) -> tuple[int, int] | None:
    """Read `2/5`, or `commit/5`: a number that another commit changes."""
    if words is None:
        return None
    index, _, number = words.partition("/")
    if index == "commit":
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        index = str(int(asked.stdout.strip()[:8] or "0", 16))
    if not re.fullmatch(r"\d+", index) or not re.fullmatch(r"[1-9]\d*", number):
        raise SystemExit(f"--share takes K/N, such as 2/5 or commit/5, got {words!r}")
    return int(index) % int(number), int(number)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", "--jobs", type=int, default=(os.cpu_count() or 1) + 1, help="processes at a time")
    parser.add_argument("--part", choices=("fast", "rest", "all"), help="fast unless files or a marker are named")
    parser.add_argument("--share", metavar="K/N", help="of every N cases the Kth; K may be the word commit")
    parser.add_argument("--marker", choices=MARKERS, help="the tests with this marker")
    parser.add_argument("--record", action="store_true", help="run all; write tests/costs.json and tests/rest.txt")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="write what each test did and cost, as JSON")
    parser.add_argument("--notes", type=Path, default=UNSTEADY, metavar="FILE", help="where unsteady tests are noted")
    parser.add_argument("--unsteady", type=int, metavar="TIMES", help="run the tests of tests/unsteady.txt so often")
    arguments, options = parser.parse_known_args()
    become_fresh()
    named = [it for it in options if not it.startswith("-") and (ROOT / it.partition("::")[0]).exists()]
    import_all(DEAR_IMPORTS if arguments.part or arguments.record or not named else ())
    if arguments.unsteady:
        return 0 if run_unsteady(arguments.unsteady) else 1
    options = [it for it in options if it not in named]
    part = arguments.part or ("all" if named or arguments.record or arguments.marker else "fast")
    if part != "all":
        options += ["--part", part]
    if arguments.marker:
        options += ["-m", arguments.marker]
        named = named or [str(it.relative_to(ROOT)) for it in with_marker(arguments.marker)]
    elif part == "all" and not named:
        options = [*WITH_LINKS, *options]
    share = share_of(arguments.share)
    if share:
        options += ["--share", f"{share[0]}/{share[1]}"]
    costs = {name: FileCost(*cost) for name, cost in recorded_costs().items()}
    files = sorted(
        str(path.relative_to(ROOT))
        for place in named or FOLDERS
        for path in ([ROOT / place] if str(place).endswith(".py") else (ROOT / place).rglob("test_*.py"))
        if named or not path.is_relative_to(ROOT / "tests/interop") or arguments.record
    )
    for source in SOURCES:
        compileall.compile_dir(source, quiet=2, workers=0)
    run = Run(options, arguments.jobs, arguments.notes)
    if arguments.marker not in (None, "links"):
        costs = {}  # their costs are recorded by none: a process for each file
    unknown = UNKNOWN if costs else SHARD * (share[1] if share else 1)
    shards = plan(files, costs, part, share[1] if share else 1, unknown)
    good = run.run(shards)
    if arguments.rows:
        arguments.rows.write_text(json.dumps(run.rows), "utf-8")
    if arguments.record:
        record(run.rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
