"""A page for each requirement of the protocol and each check: those of `accord check pages`."""

from __future__ import annotations

from collections.abc import Iterator

from tools.website.page import Page

from accord_check.requirement_pages import index, names_of_pages, page_of

BACK = "[All requirements and checks](index.md)"
"""The navigation has no line for each of these pages, so each leads to their list."""


def requirement_pages() -> Iterator[Page]:
    yield Page("requirements/index.md", index())
    for name in names_of_pages():
        yield Page(f"requirements/{name}.md", f"{page_of(name).rstrip()}\n\n{BACK}\n")
