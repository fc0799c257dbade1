"""A plugin of pytest: runs a part of the suite, and writes down how each test fared and what it cost.

`make test` leaves out what `tests/rest.txt` names: tests that cost much more than others, where a cheaper one shows
the same. `python -m tests --record` measures every test and writes that file.

    --part fast         without the tests of rest.txt
    --part rest         only these
    --share 2/5         every fifth member of each function's cases, beginning with another one for each function
    --only FILE         the tests whose ids stand in this file, one a line
    --outcomes FILE     a JSON object for each test: id, outcome, and its cost
"""

from __future__ import annotations

import json
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from os import times
from pathlib import Path

import pytest

REST = Path(__file__).with_name("rest.txt")


def pytest_addoption(parser):
    group = parser.getgroup("selection")
    group.addoption("--part", choices=("fast", "rest"), help="without the tests of tests/rest.txt, or only these")
    group.addoption("--share", metavar="K/N", help="every Nth case of each test function")
    group.addoption("--only", metavar="FILE", help="the tests whose ids stand in this file")
    group.addoption("--outcomes", metavar="FILE", help="where outcomes and costs are written")


def pytest_configure(config):
    if config.option.outcomes:
        config.pluginmanager.register(Outcomes(Path(config.option.outcomes)), "outcomes")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    option = config.option
    chosen = items
    if option.part:
        rest = Rest(REST.read_text("utf-8").splitlines() if REST.exists() else ())
        chosen = [item for item in chosen if (item.nodeid in rest) == (option.part == "rest")]
    if option.share:
        wanted = set(share([item.nodeid for item in chosen], *map(int, option.share.split("/"))))
        chosen = [item for item in chosen if item.nodeid in wanted]
    if option.only:
        wanted = set(Path(option.only).read_text("utf-8").splitlines())
        chosen = [item for item in chosen if item.nodeid in wanted]
    if len(chosen) < len(items):
        kept = set(map(id, chosen))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = chosen


def function_of(test: str) -> str:
    """The id of the test function, without the case."""
    file, _, rest = test.partition("::")
    return f"{file}::{rest.partition('[')[0]}"


def share(tests: Iterable[str], index: int, number: int) -> Iterator[str]:
    """Every `number`th case of each function. All indices together are all tests, and no two have one in common."""
    counts: dict[str, int] = defaultdict(int)
    for test in tests:
        function = function_of(test)
        if (zlib.crc32(function.encode()) + counts[function]) % number == index % number:
            yield test
        counts[function] += 1


class Rest:
    """The tests that a file names: a function with all of its cases, or one case."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._names = {line for line in lines if line and not line.startswith("#")}

    def __contains__(self, test: str) -> bool:
        return test in self._names or (function_of(test) in self._names and f"but {test}" not in self._names)


class Outcomes:
    """Writes an object for each test, and one for each dear fixture that tests share."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", encoding="utf-8", buffering=1)
        self._outcome = "passed"
        self._present = ""
        """The file of the present test."""
        self._shared = 0.0
        """What shared fixtures have cost within the present test."""

    def _write(self, **row: object) -> None:
        self._file.write(json.dumps(row) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        self._write(collected=[item.nodeid for item in session.items])

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        before, shared = Cost(), self._shared
        try:
            return (yield)
        finally:
            cost = before.since()
            self._shared = shared + cost["own"] + cost["children"]
            self._write(fixture=fixturedef.argname, file=self._present, **cost)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self._outcome, self._shared = "passed", 0.0
        self._present = item.nodeid.partition("::")[0]
        self._write(start=item.nodeid)
        before = Cost()
        try:
            return (yield)
        finally:
            scopes = {name: definitions[-1].scope for name, definitions in item._fixtureinfo.name2fixturedefs.items()}
            self._write(
                id=item.nodeid,
                outcome=self._outcome,
                fixtures=[name for name, scope in scopes.items() if scope != "function"],
                shared=self._shared,
                links=item.get_closest_marker("links") is not None,
                **before.since(),
            )

    def pytest_runtest_logreport(self, report):
        if report.failed or (report.skipped and self._outcome == "passed"):
            self._outcome = report.outcome

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(id=report.nodeid, outcome="broken")


class Cost:
    """What this process and the children that it waited for have used since an object of this class was made."""

    def __init__(self) -> None:
        self._cpu, self._clock = times(), time.monotonic()

    def since(self) -> dict[str, float]:
        """Return seconds of this process, of its children, and of the wall."""
        now = times()
        return {
            "own": round(now.user + now.system - self._cpu.user - self._cpu.system, 3),
            "children": round(
                now.children_user + now.children_system - self._cpu.children_user - self._cpu.children_system, 3
            ),
            "wall": round(time.monotonic() - self._clock, 3),
        }
