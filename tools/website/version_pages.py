"""The types that version 2 of the protocol changes, as a page of the reference."""

from __future__ import annotations

from collections.abc import Iterator

from tools.v2_tables import changed_types
from tools.website.page import Page


def version_pages() -> Iterator[Page]:
    lines = [
        "# Types that version 2 changes",
        "",
        "Generated from the official schema, its unstable part included. Fields have their names on the wire. A type",
        "that contains a changed type is a new class too. [Version 2](v2.md) explains the changes.",
        "",
    ]
    yield Page("v2-types.md", "\n".join([*lines, *changed_types(), ""]))
