"""Every test file can be collected where Python lacks the modules that only POSIX systems have."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests import FOLDERS, ROOT
from tests.posix import NAMES

FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]
HOME = ROOT / "tests" / "posix.py"

COLLECTING = """
import asyncio, subprocess, sys
import pytest

sys.modules.update(dict.fromkeys({missing!r}))
sys.exit(pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *{files!r}]))
"""

SKIPPING = """
import sys
import pytest
sys.modules.update(dict.fromkeys({missing!r}))
from tests.posix import fcntl
try:
    fcntl.ioctl(0, 0)
except pytest.skip.Exception as skipped:
    print(skipped)
"""


def names_at_the_top(text: str) -> set[str]:
    """The modules that a file imports when it is loaded."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def users_of_posix() -> list[Path]:
    return [
        path
        for path in FILES
        if "tests.posix" in names_at_the_top(path.read_text(encoding="utf-8")) and path.name[:5] == "test_"
    ]


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_no_test_file_imports_a_module_of_posix_itself():
    found = {
        str(path.relative_to(ROOT)): sorted(taken)
        for path in FILES
        if path != HOME and (taken := names_at_the_top(path.read_text(encoding="utf-8")) & set(NAMES))
    }
    assert found == {}, "import these modules from tests.posix"


def test_files_are_collected_without_the_modules_of_posix():
    files = [str(path) for path in users_of_posix() if path.name != Path(__file__).name]
    assert files
    done = run(COLLECTING.format(missing=NAMES, files=files))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout


def test_a_test_that_uses_a_missing_module_is_skipped():
    done = run(SKIPPING.format(missing=NAMES))
    assert done.stdout == "needs fcntl.ioctl, which only POSIX systems have\n", done.stderr


@pytest.mark.parametrize("text", ["import fcntl", "from fcntl import ioctl", "import os, fcntl"])
def test_an_import_at_the_top_is_found(text):
    assert "fcntl" in names_at_the_top(text)
    assert "fcntl" not in names_at_the_top(f"def later():\n    {text}\n")
