"""No test decides by a clock: on a busy machine anything takes any time, and such a test fails for no reason.

A test waits for events (`tests/waiting.py`), with a deadline that only ends a test that hangs. A program may give a
clock's time to what it tests (`link.problem(now + 10_000)`). What must not be is a comparison with the time that
something took.
"""

import ast
import re
from pathlib import Path

import pytest

from tests import FOLDERS
from tests.__main__ import unsteady_tests

CLOCKS = {"monotonic", "perf_counter", "perf_counter_ns", "monotonic_ns", "process_time", "thread_time", "time"}
CALL = re.compile(rf"\b(?:{'|'.join(CLOCKS)})\(\)")

ALLOWED = {
    "__main__.py": "the runner plans by the seconds that files took, and prints how long a run took",
    "attack": "the harness ends its rounds and its peers; what it measures is processor time",
    "engine/test_backlog.py": "the loop's time is virtual: `virtual_time.py` moves it",
    "engine/test_lanes.py": "the loop's time is virtual: `virtual_time.py` moves it",
    "engine/test_torture.py": "goes on for as long as the run asks for",
    "sync/run_cells.py": "the deadline of a wait",
    "waiting.py": "the deadline of a wait",
}
"""Files and folders that compare times, and why no result depends on how fast the machine is."""


def clock_names(tree: ast.AST) -> set[str]:
    """The variables that hold a time, or a difference of times."""
    found: set[str] = set()
    for _ in range(3):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and reads_clock(node.value, found):
                found |= {ast.unparse(target) for target in node.targets if not isinstance(target, ast.Tuple)}
            elif isinstance(node, ast.NamedExpr) and reads_clock(node.value, found):
                found.add(node.target.id)
    return found


def reads_clock(node: ast.AST, names: set[str] = frozenset()) -> bool:
    """Whether an expression is a time: a clock, a name of one, or a sum or difference of such."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return reads_clock(node.left, names) or reads_clock(node.right, names)
    if isinstance(node, ast.NamedExpr):
        return reads_clock(node.value, names)
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in CLOCKS and not node.args
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in names


def comparisons(source: str) -> list[int]:
    """The lines that compare a time."""
    if not CALL.search(source):
        return []
    tree = ast.parse(source)
    names = clock_names(tree)
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and any(reads_clock(it, names) for it in (node.left, *node.comparators))
    ]


def files_of_tests() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]


def name_of(path: Path) -> str:
    """The path of a file within the folder of tests that it stands in."""
    return next(path.relative_to(folder).as_posix() for folder in FOLDERS if path.is_relative_to(folder))


def reason(path: Path) -> str | None:
    name = name_of(path)
    return next((why for part, why in ALLOWED.items() if name == part or name.startswith(f"{part}/")), None)


def test_no_test_decides_by_a_clock():
    found = {str(path): comparisons(path.read_text()) for path in files_of_tests() if reason(path) is None}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_every_exception_is_still_needed():
    compare = [name_of(path) for path in files_of_tests() if comparisons(path.read_text())]
    for name in ALLOWED:
        assert any(it == name or it.startswith(f"{name}/") for it in compare), name


@pytest.mark.parametrize(
    "source",
    [
        "assert time.monotonic() - began < 2",
        "began = time.perf_counter()\nwork()\ntook = time.perf_counter() - began\nassert took < 0.5",
        "if (late := loop.time() - ends) > 3:\n    raise ValueError",
        "from time import monotonic\nstart = monotonic()\nassert start + 5 > monotonic()",
    ],
)
def test_a_test_that_would_decide_by_a_clock_is_found(source):
    assert comparisons(source)


def test_a_time_that_is_only_passed_on_is_no_decision():
    assert comparisons("now = loop.time()\nassert link.problem(now + 10_000) is None") == []


def test_every_test_that_failed_once_has_been_mended():
    """`python -m tests` adds the names of tests that passed when they ran again alone."""
    assert unsteady_tests() == [], "mend these tests first, then: python -m tests --unsteady 20"
