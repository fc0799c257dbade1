"""The modules of each room, with the first line of each: the lists that the design leaves to the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tools.website.page import Page

PACKAGES = Path(__file__).parents[2] / "packages"
HEAD = ["| file | owns |", "|---|---|"]


def module_pages() -> Iterator[Page]:
    lines = ["# Modules", "", "Every file of the sources, and what it owns. [Layout](layout.md) explains the rooms."]
    files = sorted(it for it in PACKAGES.glob("*/src/**/*.py") if not it.name.startswith("__"))
    for room, modules in groupby(files, lambda it: it.parent):
        rows = [f"| `{it.name}` | {first_line(it)} |" for it in modules]
        name = room.relative_to(PACKAGES).as_posix().partition("/src/")[2]
        lines += ["", f"## `{name}`", "", first_line(room / "__init__.py"), "", *HEAD, *rows]
    yield Page("design/modules.md", "\n".join([*lines, ""]))


def first_line(path: Path) -> str:
    """What a module owns."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.partition("\n")[0].replace("|", "\\|")
