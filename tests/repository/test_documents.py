"""Documentation executes: every Python block of README and docs, every example, every doctest."""

import doctest
import importlib
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests import FOLDERS, ROOT, SOURCES

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("packages/*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FOLLOWED = {"docs/coming-from/official-sdk.md", "docs/quickstart.md"}
"""Pages whose blocks belong together: another test runs them, in the order of the page or with each other."""


def blocks() -> list:
    found = []
    for document in DOCUMENTS:
        name = str(document.relative_to(ROOT))
        text = "" if name in FOLLOWED else document.read_text()
        for match in BLOCK.finditer(text):
            line = text[: match.start()].count("\n") + 1
            # The name in tests/rest.txt stays when a page gets another line: it depends on the code alone.
            short = f"{name} {zlib.crc32(match['code'].encode()):08x}"
            found.append(pytest.param(f"{name}:{line}", match["code"], id=short))
    return found


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "100", "XDG_DATA_HOME": str(folder)}
    return subprocess.run(
        arguments,
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(("place", "code"), blocks())
def test_a_code_block_runs(place, code, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(code)
    done = run([sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, f"{place}: {done.stderr}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example, tmp_path):
    done = run([sys.executable, str(example)], tmp_path)
    assert done.returncode == 0, done.stderr
    is_agent = example.stem.endswith("agent") or "agent.run()" in example.read_text()
    assert done.stdout or is_agent, "an example shows something"


def documented_modules() -> list[str]:
    return [
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for source in SOURCES
        for path in sorted(Path(source).rglob("*.py"))
        if ">>>" in path.read_text()
    ]


@pytest.mark.parametrize("module", documented_modules())
def test_a_docstring_s_example_is_true(module):
    loaded = importlib.import_module(module)
    v1 = importlib.import_module("accord.schema.v1")
    names = {"v1": v1, **{name: getattr(v1, name) for name in dir(v1)}, **vars(loaded)}
    result = doctest.testmod(loaded, extraglobs=names, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.attempted > 0
    assert result.failed == 0


def links() -> list:
    found = []
    for document in DOCUMENTS:
        targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", document.read_text())
        found += [pytest.param(document, it, id=f"{document.relative_to(ROOT)} -> {it}") for it in targets]
    return found


@pytest.mark.parametrize(("document", "target"), links())
def test_a_link_leads_somewhere(document, target):
    assert (document.parent / target).exists()


def names_of_tests() -> set[str]:
    """The names of all files of tests, and of all tests, also as `file::test` without `.py`."""
    found = set[str]()
    for path in (it for folder in FOLDERS for it in folder.rglob("test_*.py")):
        names = re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
        found |= {path.name, *names, *(f"{path.stem}::{name}" for name in names)}
    return found


def test_each_sentence_on_security_names_a_test_that_there_is():
    page = (ROOT / "docs" / "security.md").read_text()
    name = re.compile(r"`(test_\w+(?:::test_\w+|\.py)?)`")
    promises = page.partition("## A hostile peer on the network\n")[2].partition("## How it is tested\n")[0]
    said = re.findall(
        r"^(?:- .*(?:\n  .*)*|\| .*)", re.sub(r"^\| .*\n\|-.*\n", "", promises, flags=re.MULTILINE), re.MULTILINE
    )
    assert len(said) > 90
    assert [it for it in said if not name.search(it)] == []
    assert set(name.findall(page)) - names_of_tests() == set()
    for places in (it for row in said if (it := re.findall(r"`(test_\w+)` in\s+`(packages/[\w/.-]+)`", row))):
        for test, path in places:
            assert f"def {test}(" in (ROOT / path).read_text(), (test, path)
    assert [it for it in re.findall(r"`(packages/[\w/.-]+)`", page) if not (ROOT / it).exists()] == []
