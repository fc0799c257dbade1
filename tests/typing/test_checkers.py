"""Strict type checkers accept good user code, and refuse bad user code where it is bad."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import SOURCES as FOLDERS

pytestmark = pytest.mark.timeout(600)  # a checker reads everything once, also on a busy machine

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUICKSTART = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ENVIRONMENT = {**os.environ, "MYPYPATH": os.pathsep.join(FOLDERS)}
PROGRAMS = ("good_handlers.py", "bad_handlers.py", "threads.py")
SOURCES = {
    **{path.name: path.read_text() for path in map(HERE.joinpath, PROGRAMS)},
    **{f"quickstart_{number}.py": code for number, code in enumerate(BLOCK.findall(QUICKSTART.read_text()), 1)},
}
"""Programs by file name. Those of the quickstart have to be good as they stand."""

MYPY_LINE = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+): error:", re.MULTILINE)


def tool(name: str) -> str:
    """The path of a checker; skips the test where it is not installed."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed; `make check` installs it")
    return found


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, cwd=folder, env=ENVIRONMENT, timeout=500
    )
    assert done.stdout, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the programs."""
    folder = tmp_path_factory.mktemp("programs")
    for name, code in SOURCES.items():
        (folder / name).write_text(code)
    return folder


def pyright(folder):
    """Return the lines of each program at which pyright finds errors."""
    options = {"extraPaths": FOLDERS, "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(options))
    command = [tool("pyright"), "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(run(command, folder))
    assert report["summary"]["filesAnalyzed"] == len(SOURCES)
    found: dict[str, set[int]] = {name: set() for name in SOURCES}
    for problem in report["generalDiagnostics"]:
        found[Path(problem["file"]).name].add(problem["range"]["start"]["line"] + 1)
    return found


def mypy(folder):
    """Return the lines of each program at which mypy finds errors."""
    options = ["--strict", "--config-file=", "--python-executable", sys.executable]
    report = run([tool("mypy"), *options, *SOURCES], folder)
    found: dict[str, set[int]] = {name: set() for name in SOURCES}
    for match in MYPY_LINE.finditer(report):
        found[Path(match["path"]).name].add(int(match["line"]))
    return found


def marked(code: str) -> set[int]:
    return {number for number, line in enumerate(code.splitlines(), 1) if line.endswith("# error")}


@pytest.fixture(scope="module", params=[pyright, mypy], ids=lambda checker: checker.__name__)
def found(request, folder):
    """The lines of each program at which a checker finds errors."""
    return request.param(folder)


@pytest.mark.parametrize("name", SOURCES)
def test_a_checker_finds_the_marked_errors_and_no_others(found, name):
    assert found[name] == marked(SOURCES[name])
