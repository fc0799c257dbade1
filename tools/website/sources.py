"""The pages that exist as files: docs/, the pages at the root, and each example with its source."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.website.page import Page

ROOT = Path(__file__).parents[2]

ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}
"""Files at the root, and where each is in the site. README.md becomes the start page's neighbour, docs/home.md."""

RENAMED = {
    "docs/home.md": "index.md",
    "docs/README.md": "all-pages.md",
    "README.md": "index.md",
    "docs/examples.md": "examples/index.md",
}
"""Files whose place in the site is not their place below docs."""

REPLACED = "docs/reference/"
"""Pages that the site has in another form: one page for each public name."""


def site_path(origin: str) -> str | None:
    """Where a file of the repository is in the site; None if it is not there."""
    if origin in RENAMED:
        return RENAMED[origin]
    if origin in ROOT_PAGES:
        return ROOT_PAGES[origin]
    if origin.startswith("docs/"):
        return with_index(origin.removeprefix("docs/"))
    if origin == "examples":
        return "examples/index.md"
    if origin.startswith("examples/"):
        path = ROOT / origin
        return "examples/index.md" if path.is_dir() else with_index(f"{origin.rpartition('.')[0]}.md")
    return None


def with_index(path: str) -> str:
    """A folder's README is its first page."""
    return f"{path.removesuffix('README.md')}index.md" if path.endswith("README.md") else path


def documents() -> Iterator[Page]:
    """Every page of docs and of the root, except those that the site has in another form."""
    files = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ROOT_PAGES)]
    for file in files:
        origin = file.relative_to(ROOT).as_posix()
        if file.is_file() and not origin.startswith(REPLACED):
            path = site_path(origin)
            assert path is not None
            yield Page(path, file.read_text(encoding="utf-8"), origin)


def pictures() -> dict[str, Path]:
    """The files that pages show, by their place in the site."""
    kinds = {".png", ".svg", ".jpg", ".gif"}
    return {
        file.relative_to(ROOT / "docs").as_posix(): file
        for file in sorted((ROOT / "docs").rglob("*"))
        if file.suffix in kinds
    }


# The examples


def examples() -> Iterator[Page]:
    """A page for each example with its source; docs/examples.md lists them."""
    found = [*sorted((ROOT / "examples").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.ipynb"))]
    files = [it for it in found if "__pycache__" not in it.parts and it.name != "__init__.py"]
    written = sorted((ROOT / "examples").rglob("*.md"))
    for file in written:
        origin = file.relative_to(ROOT).as_posix()
        if origin != "examples/README.md":
            yield Page(str(site_path(origin)), file.read_text(encoding="utf-8"), origin)
    taken = {site_path(it.relative_to(ROOT).as_posix()) for it in written}
    for file in files:
        origin = file.relative_to(ROOT).as_posix()
        path = str(site_path(origin))
        if path in taken:
            path = f"{path.removesuffix('.md')}-source.md"
        about, code = notebook(file) if file.suffix == ".ipynb" else program(file)
        lines = [f"# {file.relative_to(ROOT / 'examples')}", about, f"```py\n{code.rstrip()}\n```"]
        yield Page(path, "\n\n".join(it for it in lines if it) + "\n", origin)


def program(file: Path) -> tuple[str, str]:
    """What a program is, as it says first, and the program, which says the rest."""
    code = file.read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(code)) or ""
    return " ".join(about.partition("\n\n")[0].split()), code


def notebook(file: Path) -> tuple[str, str]:
    """What a notebook's first text says, and its code."""
    cells: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(it["source"]) for it in cells if it["cell_type"] == "markdown"]
    code = ["".join(it["source"]) for it in cells if it["cell_type"] == "code"]
    about = texts[0].lstrip("# ") if texts else ""
    return about, "\n\n\n".join(code)
