"""Which small faults do the tests find? Puts mutants into a copy of the checkout, and runs the tests that reach each.

    python tools/mutants.py [--number 300] [--seed 1] [--jobs 2] [--folder FOLDER] [--fast]

A mutant is a flipped condition, a shifted bound, a number that is one too large, a call that is left out, or an
`await` that is left out. All are in one copy, and a variable of the environment chooses the one that is active. A run
of `make test` records which tests reach which mutant, also through the programs that they start, and each mutant runs
the cheapest of them until one fails. What lives does the same with the tests that `make test` leaves out, which takes
longer: `--fast` does without. The last lines count, for each room, what killed the mutants, and list those that live.
`tools/mutants.toml` names mutants that need no test, with the reason: they are counted and listed apart.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import subprocess
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = Path("packages")
SWITCH = "accord_mutants"
REACHED, ACTIVE = "ACCORD_MUTANTS_REACHED", "ACCORD_MUTANT"
WITHOUT_TEST = ROOT / "tools" / "mutants.toml"
ROUNDS = ((40, 8), (400, 100))
"""How many of the cheapest tests of a part a mutant runs, and how many of one folder; then of those that are left."""
HANGS, SLOWER = 90.0, 10.0
"""Seconds until a mutant's run is ended, beside so many times what its tests cost. A run that takes so long hangs
because of the mutant: it is killed."""
NOT_ASKED = ("tests/repository/", "tests/packaging/", "tests/site/", "tests/typing/")
"""They read the sources, which the mutants change."""

SWITCH_SOURCE = f"""
import os

_active = int(os.environ.get("{ACTIVE}", "0"))
_file = os.environ.get("{REACHED}")
_seen = set()


def active(number):
    if _file:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if test and (number, test) not in _seen:
            _seen.add((number, test))
            descriptor = os.open(_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            os.write(descriptor, f"{{number}}\\t{{test}}\\n".encode())
            os.close(descriptor)
    return number == _active
"""

PARTS = {"fast": "make test", "rest": "the rest"}
"""The parts of the suite in the order in which they are asked, and what the table calls them."""

NEEDS_NONE = "needs no test"
"""What the table calls mutants of `WITHOUT_TEST`."""

RARE = {"number": 4, "bound": 3, "await": 2, "call": 1, "condition": 0}
"""Which kind a line gets when it could have several: the one that is found least often."""
SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@dataclass(frozen=True)
class Mutant:
    """A place of the source, and what stands there instead."""

    file: Path
    kind: str
    line: int
    start: int
    end: int
    text: str

    @property
    def room(self) -> str:
        _, _, _, package, *inside = self.file.parts
        room = inside[0] if len(inside) > 1 else "(root)"
        return room if package == "accord" else f"{package}/{room}"

    @property
    def source(self) -> str:
        """Return its line of the source."""
        return (ROOT / self.file).read_text("utf-8").splitlines()[self.line - 1].strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}"

    def replacement(self, number: int) -> str:
        switch, text = f"{SWITCH}.active({number})", self.text
        match self.kind:
            case "condition":
                return f"((not ({text})) if {switch} else ({text}))"
            case "bound":
                operator = next(it for it in ("<=", ">=", "<", ">") if f" {it} " in text)
                shifted = text.replace(f" {operator} ", f" {SHIFTED[operator]} ")
                return f"(({shifted}) if {switch} else ({text}))"
            case "number":
                return f"({int(text) + 1} if {switch} else {text})"
            case "await":
                return f"({text.removeprefix('await ')}) if {switch} else ({text})"
            case _:
                return f"None if {switch} else {text}"


def candidates(file: Path) -> Iterator[Mutant]:
    text = (ROOT / file).read_bytes()
    tree, lines = ast.parse(text), text.splitlines()
    # Before Python 3.12, what stands in a formatted string has no true place.
    formatted = {id(it) for string in ast.walk(tree) if isinstance(string, ast.JoinedStr) for it in ast.walk(string)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if id(node) in formatted or (found := _mutable(node, function.name)) is None:
                continue
            kind, place = found
            segment = lines[place.lineno - 1][place.col_offset : place.end_col_offset].decode()
            if place.lineno == place.end_lineno and not (kind == "number" and not segment.isdigit()):
                yield Mutant(file, kind, place.lineno, place.col_offset, place.end_col_offset or 0, segment)


def _mutable(node: ast.AST, function: str) -> tuple[str, ast.expr | ast.stmt] | None:
    """Return the kind of mutant that can stand in for this node, and what is replaced."""
    match node:
        case ast.While(test=ast.Constant()):
            return None
        case ast.If() | ast.IfExp() | ast.While():
            return "condition", node.test
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            return "bound", node
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=int())):
            return "number", node.right
        case ast.Expr(value=ast.Await()):
            return "await", node
        case ast.Expr(value=ast.Call()) if function != "__init__":
            return "call", node
        case _:
            return None


def choose(number: int, seed: int) -> list[Mutant]:
    """Return so many, at most one of a line: of each room as many as its share of the candidates, and at least two."""
    by_room: dict[str, dict[tuple[Path, int], Mutant]] = defaultdict(dict)
    chance = random.Random(seed)
    for path in sorted((ROOT / PACKAGES).glob("*/src/**/*.py")):
        if "windows" not in path.parts:
            for mutant in candidates(path.relative_to(ROOT)):
                known = by_room[mutant.room].get((mutant.file, mutant.line))
                if known is None or RARE[mutant.kind] > RARE[known.kind]:
                    by_room[mutant.room][mutant.file, mutant.line] = mutant
    total = sum(map(len, by_room.values()))
    chosen: list[Mutant] = []
    for room in sorted(by_room):
        members = sorted(by_room[room].values(), key=lambda it: (str(it.file), it.line))
        chosen += chance.sample(members, min(len(members), max(2, round(number * len(members) / total))))
    return sorted(chosen, key=lambda it: (str(it.file), it.line))


def copy(folder: Path, mutants: Sequence[Mutant]) -> None:
    """Make the copy with all mutants, and an environment of its own, so that `python -I` finds them as well."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "x"], cwd=folder, input=archive, check=True)
    by_file: dict[Path, list[tuple[int, Mutant]]] = defaultdict(list)
    for number, mutant in enumerate(mutants, 1):
        by_file[mutant.file].append((number, mutant))
    for file, members in by_file.items():
        lines = (folder / file).read_text("utf-8").splitlines()
        for number, mutant in members:
            line = lines[mutant.line - 1].encode()
            changed = line[: mutant.start] + mutant.replacement(number).encode() + line[mutant.end :]
            lines[mutant.line - 1] = changed.decode()
        text = "\n".join(lines) + "\n"
        tree = ast.parse(text)
        future = [it.lineno for it in tree.body if isinstance(it, ast.ImportFrom) and it.module == "__future__"]
        first = tree.body[0]
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        after = max(future) if future else first.end_lineno if documented else 0
        lines.insert(after or 0, f"import {SWITCH}")
        (folder / file).write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "packages" / "accord" / "src" / f"{SWITCH}.py").write_text(SWITCH_SOURCE, "utf-8")
    subprocess.run(
        ["make", ".venv/.test"], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@dataclass(frozen=True)
class Recording:
    """Which tests of a part of the suite reach each mutant, and what each test that passed costs."""

    reached: dict[int, set[str]]
    costs: dict[str, float]

    @classmethod
    def of(cls, folder: Path, part: str, jobs: int) -> Recording:
        """Run the part, or read what an earlier run of it has left in the folder."""
        reached, rows = folder / f"reached-{part}.tsv", folder / f"rows-{part}.json"
        if not rows.exists():
            reached.write_text("", "utf-8")
            reached.chmod(0o666)  # some tests run programs as another user
            command = [".venv/bin/python", "-m", "tests", "-n", str(jobs), "--part", part, "--rows", str(rows)]
            environment = {**os.environ, REACHED: str(reached)}
            subprocess.run([*command, "-m", "not links"], cwd=folder, env=environment, check=False)
        costs = {
            row["id"]: row["own"] + row["children"] + row["wall"] / 10
            for row in json.loads(rows.read_text("utf-8"))
            if row.get("outcome") == "passed" and not row["id"].startswith(NOT_ASKED)
        }
        by_mutant: dict[int, set[str]] = defaultdict(set)
        for line in reached.read_text("utf-8").splitlines():
            number, test = line.split("\t", 1)
            if test in costs:
                by_mutant[int(number)].add(test)
        return cls(by_mutant, costs)

    def killers(self, folder: Path, numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, str | None]]:
        """Give each of these mutants with the test that it fails, if there is one."""
        with ThreadPoolExecutor(jobs) as pool:
            yield from zip(numbers, pool.map(self.killer, repeat(folder), numbers), strict=True)

    def killer(self, folder: Path, number: int) -> str | None:
        """Return a test that fails with this mutant, if one does."""
        left = sorted(self.reached.get(number, ()), key=lambda it: (self.costs[it], it))
        for most, of_folder in ROUNDS:
            chosen = first(left, most, of_folder)
            seconds = HANGS + SLOWER * sum(self.costs[it] for it in chosen)
            if chosen and (test := failing(folder, number, chosen, seconds)):
                return test
            left = [it for it in left if it not in chosen]
        return None


def first(tests: Sequence[str], most: int, most_of_folder: int) -> list[str]:
    of_folder: Counter[str] = Counter()
    chosen: list[str] = []
    for test in tests:
        folder = str(Path(test.partition("::")[0]).parent)
        if of_folder[folder] < most_of_folder and len(chosen) < most:
            of_folder[folder] += 1
            chosen.append(test)
    return chosen


def without_test() -> dict[tuple[Path, str], str]:
    """Return the mutants that need no test, by file and line of the source, with the reasons."""
    files = tomllib.loads(WITHOUT_TEST.read_text("utf-8"))
    return {(Path(file), line): why for file, lines in files.items() for line, why in lines.items()}


def failing(folder: Path, number: int, tests: Sequence[str], seconds: float) -> str | None:
    """Return the test that fails with this mutant, if one does."""
    with tempfile.TemporaryDirectory(prefix="accord-mutant-") as own:
        only, outcomes = Path(own, "only"), Path(own, "outcomes")
        only.write_text("\n".join(tests), "utf-8")
        files = sorted({it.partition("::")[0] for it in tests})
        command = [".venv/bin/python", "-m", "pytest", "-p", "tests.selection", "-x", "-q", "--timeout", "30"]
        command += ["--tb=no", "-p", "no:cacheprovider", "--only", str(only), "--outcomes", str(outcomes), *files]
        environment = {**os.environ, ACTIVE: str(number)}
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()
        rows = [json.loads(it) for it in outcomes.read_text("utf-8").splitlines()] if outcomes.exists() else []
        failed = [row["id"] for row in rows if row.get("outcome") in ("failed", "broken")]
        if failed:
            return failed[0]
        return None if code == 0 else f"{files[0]} (the process {'hung' if code is None else 'died'})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep the copy here, and use the recordings that it has")
    parser.add_argument("--fast", action="store_true", help="run no test that `make test` leaves out")
    arguments = parser.parse_args()
    mutants = choose(arguments.number, arguments.seed)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="accord-mutants-"))
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "packages").exists():
        copy(folder, mutants)
    reasons = without_test()
    killed: dict[int, tuple[str, str]] = {
        number: (NEEDS_NONE, reasons[mutant.file, mutant.source])
        for number, mutant in enumerate(mutants, 1)
        if (mutant.file, mutant.source) in reasons
    }
    reached: set[int] = set()
    for part, by in PARTS.items():
        if part == "rest" and arguments.fast:
            continue
        living = [number for number in range(1, len(mutants) + 1) if number not in killed]
        recording = Recording.of(folder, part, arguments.jobs)
        reached |= recording.reached.keys()
        for number, test in recording.killers(folder, living, arguments.jobs):
            mutant = mutants[number - 1]
            print(f"[{number}/{len(mutants)}] {mutant}: {f'killed by {test}' if test else 'lives'}", flush=True)
            if test:
                killed[number] = by, test
    table: dict[str, Counter[str]] = defaultdict(Counter)
    lines: list[str] = []
    for number, mutant in enumerate(mutants, 1):
        by, test = killed.get(number, ("nothing" if number in reached else "not reached", ""))
        table[mutant.room][by] += 1
        if by != PARTS["fast"]:
            lines.append(f"{by}: {mutant} {mutant.text!r} {test}")
    columns = (*PARTS.values(), "nothing", "not reached", NEEDS_NONE)
    print(f"\n| room | mutants | {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) + 1)}")
    total: Counter[str] = Counter()
    for counts in table.values():
        total += counts
    for room, counts in [*sorted(table.items()), ("all", total)]:
        print(f"| {room} | {counts.total()} | {' | '.join(str(counts[it]) for it in columns)} |")
    print(*["", *lines], sep="\n")
    print(f"\nThe copy is in {re.sub(r'^' + re.escape(str(Path.home())), '~', str(folder))}.")


if __name__ == "__main__":
    main()
