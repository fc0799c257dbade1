"""Runs the paths under callgrind, and reads what it has written down."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.counts.worker import LONGER

CALIBRATION = "calibration"
ROOT = Path(__file__).parents[2]
MARKS = 4
"""Marks of a path: the start and the end of its shorter run, and of its longer one."""


class NoValgrind(Exception):
    """Counting is not possible here."""


class Counts(msgspec.Struct, frozen=True):
    """Instructions for a message, by the name of its path."""

    each: dict[str, float]

    def ratio(self, name: str) -> float:
        """What a message of this path costs, as a multiple of the calibration's."""
        return self.each[name] / self.each[CALIBRATION]


def counted(names: Sequence[str], *, sources: Path | None = None) -> Counts:
    """Count these paths, or all, with these sources of ours or those of this checkout."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NoValgrind("valgrind is needed to count instructions; install the package valgrind")
    wanted = [CALIBRATION, *(name for name in names if name != CALIBRATION)] if names else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        done = subprocess.run(
            [
                *(valgrind, "--quiet", "--tool=callgrind", "--dump-before=getpgid", f"--callgrind-out-file={out}"),
                *(sys.executable, "-m", "benchmarks.counts.worker", *wanted),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONHASHSEED": "0",
                "PYTHONPATH": str(sources or os.pathsep.join(map(str, ROOT.glob("packages/*/src")))),
            },
            stdout=subprocess.PIPE,
            check=True,
        )
        paths = json.loads(done.stdout)
        return Counts({path["name"]: cost(out, number, path["size"]) for number, path in enumerate(paths)})


def cost(out: Path, number: int, size: int) -> float:
    """The instructions for one message of a path, from the difference of its two runs."""
    first = 1 + MARKS * number
    shorter, longer = _instructions(out, first + 1), _instructions(out, first + 3)
    return (longer - shorter) / ((LONGER - 1) * size)


def _instructions(out: Path, mark: int) -> int:
    """The instructions between this mark and the one before it."""
    with out.with_name(f"{out.name}.{mark}").open() as dump:
        return next(int(line.split()[1]) for line in dump if line.startswith("summary:"))
