"""Strict type checkers accept good user code, and refuse bad user code where it is bad."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = sorted(HERE.glob("good_*.py")) + sorted(HERE.glob("bad_*.py"))
ENVIRONMENT = {**os.environ, "MYPYPATH": str(ROOT / "src")}
MYPY_LINE = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+): error:", re.MULTILINE)


def tool(name: str) -> str:
    """The path of a checker; skips the test where it is not installed."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed; `make check` installs it")
    return found


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, cwd=folder, env=ENVIRONMENT, timeout=100
    )
    assert done.stdout, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    """The lines of each file at which pyright finds errors."""
    folder = tmp_path_factory.mktemp("pyright")
    for path in FILES:
        shutil.copy(path, folder)  # pyright includes only what is below its configuration
    options = {
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(options))
    command = [tool("pyright"), "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(run(command, folder))
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    found: dict[str, set[int]] = {path.name: set() for path in FILES}
    for problem in report["generalDiagnostics"]:
        found[Path(problem["file"]).name].add(problem["range"]["start"]["line"] + 1)
    return found


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """The lines of each file at which mypy finds errors."""
    folder = tmp_path_factory.mktemp("mypy")
    options = ["--strict", "--config-file=", "--explicit-package-bases", "--python-executable", sys.executable]
    report = run([tool("mypy"), *options, *map(str, FILES)], folder)
    found: dict[str, set[int]] = {path.name: set() for path in FILES}
    for match in MYPY_LINE.finditer(report):
        found[Path(match["path"]).name].add(int(match["line"]))
    return found


def marked(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# error")}


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_checker_finds_the_marked_errors_and_no_others(request, checker, path):
    assert request.getfixturevalue(checker)[path.name] == marked(path)
