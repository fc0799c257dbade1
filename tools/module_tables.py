"""Writes the tables of modules in docs from the first line of each module's docstring.

    python tools/module_tables.py            rewrite the tables
    python tools/module_tables.py --check    only say whether they are up to date

A table stands between `<!-- modules: NAMES -->` and `<!-- end -->`. NAMES are packages and modules:

    accord.agent         the modules of a package; a package inside of it has one row
    accord.services.**   the modules of a package and of all packages inside of it
    accord.session         this module
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted(ROOT.glob("packages/*/src"))
TABLE = re.compile(r"(?P<start><!-- modules: (?P<names>[^>]+?) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
HEAD = "| file | owns |\n|---|---|\n"


def pages() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


def updated(text: str) -> str:
    """The text of a page with its tables made again."""
    return TABLE.sub(lambda match: match["start"] + table(match["names"]) + match["end"], text)


def table(names: str) -> str:
    paths = list(selected(names.split()))
    base = common_folder(paths)
    return HEAD + "".join(f"| `{label(path, base)}` | {first_line(path)} |\n" for path in paths)


def selected(names: list[str]) -> Iterator[Path]:
    for name in names:
        path = located(name.removesuffix(".**"))
        if path.is_file():
            yield path
        elif name.endswith(".**"):
            yield from sorted((it for it in path.rglob("*.py") if is_module(it)), key=files_first)
        else:
            yield from sorted(it for it in path.iterdir() if is_module(it))


def located(name: str) -> Path:
    paths = [source.joinpath(*name.split(".")) for source in SOURCES]
    for path in paths:
        if path.is_dir():
            return path
    module = next((file for path in paths if (file := path.with_suffix(".py")).is_file()), None)
    if module is None:
        raise SystemExit(f"tools/module_tables.py: there is no module {name!r}; correct the marker that names it")
    return module


def is_module(path: Path) -> bool:
    if path.is_dir():
        return (path / "__init__.py").is_file()
    return path.suffix == ".py" and not path.name.startswith("__")


def files_first(path: Path) -> list[tuple[bool, str]]:
    """Sorts the modules of a package before those of the packages inside of it."""
    return [*((True, part) for part in path.parent.parts), (False, path.name)]


def common_folder(paths: list[Path]) -> Path:
    """The folder that the names in a table start from."""
    return Path(os.path.commonpath([path.parent for path in paths]))


def label(path: Path, base: Path) -> str:
    name = path.relative_to(base).as_posix()
    return (name.partition("/src/")[2] or name) + "/" * path.is_dir()


def first_line(path: Path) -> str:
    module = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    return docstring.partition("\n")[0].replace("|", "\\|")


def main() -> int:
    outdated = {page: new for page in pages() if (new := updated(old := page.read_text())) != old}
    if "--check" in sys.argv[1:]:
        for page in outdated:
            print(f"{page.relative_to(ROOT)} is not up to date; run: python tools/module_tables.py")
        return bool(outdated)
    for page, text in outdated.items():
        page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
