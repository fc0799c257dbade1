"""A page for each requirement of the protocol and each check: those of `accord check pages`."""

from __future__ import annotations

from collections.abc import Iterator

from tools.website.page import Page

from accord.check.pages import index, names_of_pages, page_of


def requirement_pages() -> Iterator[Page]:
    yield Page("requirements/index.md", index())
    for name in names_of_pages():
        yield Page(f"requirements/{name}.md", page_of(name))
