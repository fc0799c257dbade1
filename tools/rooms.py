"""Compares each room of the source with its budget, which stands in the table of docs/design/layout.md.

    python tools/rooms.py            print all rooms; end with 1 if one is over its budget, or has none
    python tools/rooms.py --lower    set each budget to what the room has now, in steps of 50 lines, where that is less

A room is a folder of `accord` or `accord_tools`, or all modules that stand beside the folders; each other package is
one room. A line of code is one that has a token: no blank line, no comment, no docstring.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("packages/*/src/*/"))
WITH_ROOMS = ("accord", "accord_tools")
LAYOUT = ROOT / "docs" / "design" / "layout.md"
ROW = re.compile(
    r"^\| `(?P<room>[\w()/]+?)/?` \|(?P<sentence>[^|]*)\| (?P<files>\d+) \| (?P<lines>\d+) \|", re.MULTILINE
)
STEP = 50
"""Budgets are multiples of so many lines, so that a correction of one line needs no new one."""
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


@dataclass
class Size:
    files: int = 0
    lines: int = 0


def lines_of_code(text: str) -> int:
    strings = (
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    documentation = {line for lines in strings for line in lines}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - documentation)


def measured() -> dict[str, Size]:
    sizes: dict[str, Size] = defaultdict(Size)
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            size = sizes[room_of(path.relative_to(source.parent).parts)]
            size.files += 1
            size.lines += lines_of_code(path.read_text("utf-8"))
    return sizes


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a file, whose path begins with the name of its package; rooms of `accord` are named without it."""
    package = parts[0]
    room = parts[1] if len(parts) > 2 else "(root)"
    if package not in WITH_ROOMS:
        return package
    return room if package == "accord" else f"{package}/{room}"


def names_used_twice() -> list[str]:
    """The file names that stand in several folders of a package; who opens one cannot know which it is."""
    return sorted(
        name
        for source in SOURCES
        for name, count in Counter(path.name for path in source.rglob("*.py")).items()
        if count > 1 and not name.startswith("__")
    )


def main() -> int:
    page = LAYOUT.read_text("utf-8")
    budgets = {row["room"]: Size(int(row["files"]), int(row["lines"])) for row in ROW.finditer(page)}
    sizes = measured()
    if "--lower" in sys.argv[1:]:

        def lowered(row: re.Match[str]) -> str:
            size, budget = sizes.get(row["room"], Size()), budgets[row["room"]]
            files, lines = min(size.files, budget.files), min(-(-size.lines // STEP) * STEP, budget.lines)
            return row[0].replace(f"| {budget.files} | {budget.lines} |", f"| {files} | {lines} |")

        LAYOUT.write_text(ROW.sub(lowered, page), "utf-8")
        return 0
    faults: list[str] = []
    print(f"{'room':28}{'files':>7}{'budget':>8}{'lines':>9}{'budget':>8}")
    for room, size in sorted(sizes.items(), key=lambda it: -it[1].lines):
        budget = budgets.get(room)
        if budget is None:
            faults.append(
                f"{room} has no row in {LAYOUT.relative_to(ROOT)}: say what it is for, and how large it may be"
            )
            continue
        over = size.files > budget.files or size.lines > budget.lines
        print(f"{room:28}{size.files:7}{budget.files:8}{size.lines:9}{budget.lines:8}{'  over' if over else ''}")
        if over:
            faults.append(f"{room} is over its budget: take something away, or raise the budget and say why")
    faults += [f"{room} has a row in {LAYOUT.relative_to(ROOT)} and no files" for room in budgets.keys() - sizes.keys()]
    total = Size(sum(it.files for it in sizes.values()), sum(it.lines for it in sizes.values()))
    print(f"{'all':28}{total.files:7}{'':8}{total.lines:9}")
    print(f"{len(names_used_twice())} file names stand in several folders")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
