"""What version 2 of the protocol changes, as a page of the reference."""

from __future__ import annotations

from collections.abc import Iterator

from tools.v2_tables import changed_types, methods, updates
from tools.website.page import Page


def version_pages() -> Iterator[Page]:
    lines = [
        "# What version 2 changes",
        "",
        "Generated from the official schema, its unstable part included. [Version 2](v2.md) explains the changes.",
        "",
        "## Methods",
        "",
        *methods(),
        "",
        "## Updates",
        "",
        *updates(),
        "",
        "## Types",
        "",
        "Fields have their names on the wire. A type that contains a changed type is a new class too.",
        "",
        *changed_types(),
        "",
    ]
    yield Page("v2-types.md", "\n".join(lines))
