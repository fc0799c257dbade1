"""The names of tests, for tables that say which test covers what."""

from __future__ import annotations

import ast
from pathlib import Path

import tests


def named(folder: str) -> set[str]:
    """The tests of a folder, as `file::test` without `.py`."""
    found: set[str] = set()
    for path in (it for place in tests.__path__ for it in Path(place, folder).glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.add(f"{path.stem}::{node.name}")
    return found
