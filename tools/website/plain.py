"""The site for programs: llms.txt, llms-full.txt, and each page as Markdown beside its HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.website.navigation import reading_order
from tools.website.page import Page

ABOUT = (
    "# Accord",
    "",
    "> The Agent Client Protocol (ACP) for Python: write agents for editors, and drive agents from programs.",
    "",
    "Every page is Markdown at the address in this list; its HTML is at the same address without `.md`.",
    "llms-full.txt has all of these pages in one file.",
)


def write_plain(folder: Path, pages: Mapping[str, Page], navigation: list[dict[str, Any]]) -> None:
    """Write all three into the folder of a built site."""
    for page in pages.values():
        file = folder / page.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page.text, encoding="utf-8")
    order = list(reading_order(navigation))
    (folder / "llms.txt").write_text("\n".join(index(order, pages)) + "\n", encoding="utf-8")
    whole = "\n\n".join(f"<!-- {path} -->\n\n{pages[path].text.strip()}" for _, path in order)
    (folder / "llms-full.txt").write_text(whole + "\n", encoding="utf-8")


def index(order: list[tuple[str, str]], pages: Mapping[str, Page]) -> Iterator[str]:
    yield from ABOUT
    before = None
    for section, path in order:
        if section != before:
            yield from ("", f"## {section or 'Start'}", "")
            before = section
        summary = pages[path].summary
        yield f"- [{pages[path].title}]({path})" + (f": {summary}" if summary else "")
