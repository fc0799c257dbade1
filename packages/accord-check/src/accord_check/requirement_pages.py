"""A page for each requirement and check, as Markdown, from the tables. PURE, except for writing.

README.md               the index, by theme
tool.id-unique.md       a page for each
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from accord_check.checks import CHECKS, Check, url_of
from accord_check.requirements import REQUIREMENTS, Requirement


def write_pages(folder: str | Path) -> int:
    """Write the index and a page for each requirement and check into a folder; returns how many pages."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    names = names_of_pages()
    for name in names:
        (place / f"{name}.md").write_text(page_of(name), encoding="utf-8")
    (place / "README.md").write_text(index(), encoding="utf-8")
    return len(names)


def names_of_pages() -> list[str]:
    """The ids that have a page: every requirement, and every check that no requirement names."""
    return [*REQUIREMENTS, *(name for name in CHECKS if name not in REQUIREMENTS)]


def index() -> str:
    """The page that lists all others."""
    lines = ["# Requirements and checks", ""]
    theme = ""
    for name in sorted(names_of_pages()):
        if name.split(".")[0] != theme:
            theme = name.split(".")[0]
            lines += ["", f"## {theme}", "", "| id | of | level | demands |", "|---|---|---|---|"]
        about = CHECKS.get(name) or REQUIREMENTS[name]
        lines.append(f"| [{name}]({name}.md) | {about.of} | {about.level} | {_clause(about)} |")
    return "\n".join(lines) + "\n"


def page_of(name: str) -> str:
    """The page of a requirement or a check."""
    check, demand = CHECKS.get(name), REQUIREMENTS.get(name)
    about = check or REQUIREMENTS[name]
    side = {"both": "either side", "transport": "either side"}.get(about.of, f"the {about.of}")
    lines = [f"# {name}", "", f"**{about.level}**: {side} {_clause(about)}.", ""]
    lines += [f"- Page: [{about.page}]({url_of(about.page)})"]
    if demand is not None and not demand.stable:
        lines.append("- Only a proposal demands it.")
    lines += _about_check(check) if check is not None else ["- No check judges it: it cannot be seen from outside."]
    return "\n".join(lines) + "\n"


def _about_check(check: Check) -> Iterator[str]:
    yield f"- Judged by {check.judged_by}."
    because = f", because {check.because}" if check.because else ""
    yield f"- Found as {check.found_as}{because}."
    if check.since:
        yield f"- Since schema {check.since}: `--schema` with an older version leaves it out."
    yield f"- Expected: {check.expected}."
    if check.fix:
        yield f"- What to do: {check.fix}."
    if check.tck:
        yield f"- The official test kit: {', '.join(check.tck)}."
    yield f'- Let it fail for now: `"{check.id}" = "the reason"` under `[expect]`, in the file of `--expect`.'


def _clause(about: Check | Requirement) -> str:
    return about.clause.replace("|", "\\|")
