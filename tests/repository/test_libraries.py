"""Libraries are used as they are: nothing of them is replaced at run time, and nothing private is used."""

import ast
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "accord"


OURS = {"accord", *sys.stdlib_module_names}


def is_library(module):
    return (module or "accord").partition(".")[0] not in OURS


def imported(tree):
    """The names in a module that stand for something of a library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names if is_library(alias.name))
        elif isinstance(node, ast.ImportFrom) and is_library(node.module):
            yield from (alias.asname or alias.name for alias in node.names)


def root(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def misuses(text):
    """The lines that assign to an attribute of an imported name, or use a private one."""
    tree = ast.parse(text)
    names = set(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and root(node) in names:
            is_private = node.attr.startswith("_") and not node.attr.endswith("__")
            if is_private or not isinstance(node.ctx, ast.Load):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and root(node.func) == "setattr" and root(node.args[0]) in names:
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and is_library(node.module):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


@pytest.mark.parametrize(
    "text",
    [
        "import h2.connection\nh2.connection.H2Connection.limit = 1",
        "from h2 import settings\nsetattr(settings.Settings, 'a', 1)",
        "import httptools\nhttptools.parser._parser",
        "from websockets.frames import _private",
    ],
)
def test_a_patch_or_a_private_name_is_found(text):
    assert list(misuses(text))


PATCHED = {"adapters/official_sdk.py: acp.stdio.stdio_streams"}
"""What is replaced on purpose: `official_sdk.install` puts our engine into the official SDK, and says so."""


def test_no_library_is_patched_and_no_private_name_of_one_is_used():
    found = {
        f"{path.relative_to(SOURCES)}: {misuse}"
        for path in SOURCES.rglob("*.py")
        for misuse in misuses(path.read_text())
    }
    assert found == PATCHED
