"""The order in which people read the site: sections of pages.

A page that is not listed is not lost: a guide goes to the end of the guides, the pages of a folder to its section. So a
new page needs no line here, and a line makes it easier to find.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tools.website.page import Page


class Section(NamedTuple):
    """A heading of the navigation and what is below it."""

    title: str
    entries: tuple[str | Section, ...]
    """Paths of pages, and sections. A path that ends with `/*` stands for all other pages of that folder."""


SECTIONS: tuple[Section, ...] = (
    Section(
        "Guide",
        (
            "concepts.md",
            "install.md",
            "quickstart.md",
            "model.md",
            "editors.md",
            "dev.md",
            "testing.md",
            "deploying.md",
            "troubleshooting.md",
            Section("Coming from", ("coming-from/official-sdk.md", "coming-from/*")),
        ),
    ),
    Section(
        "Topics",
        (
            Section(
                "Agents",
                (
                    "agents.md",
                    "plain-functions.md",
                    "sessions.md",
                    "mcp.md",
                    "adapters.md",
                    "coding-agent.md",
                    "suggestions.md",
                ),
            ),
            Section("Clients", ("clients.md", "sync.md", "lending.md", "updates.md", "exceptions.md")),
            Section("At a terminal", ("command-line.md", "run.md", "chat.md", "registry.md")),
            Section("Operating", ("remote.md", "hosts.md", "web.md", "proxies.md", "plugins.md", "security.md")),
            Section("Looking inside", ("watching.md", "inspect.md", "check.md", "check-in-ci.md")),
            Section("More", ("*",)),
        ),
    ),
    Section(
        "Reference",
        (
            "reference/index.md",
            Section("Names", ("reference/*",)),
            Section("Session updates", ("session-updates/index.md", "session-updates/*")),
            Section("Error codes", ("errors/index.md", "errors/*")),
            Section("Command line", ("commands/index.md", "commands/*")),
            "requirements/index.md",
            "engine.md",
            "v2.md",
            "v2-types.md",
            "platforms.md",
            "policies.md",
            "changelog.md",
        ),
    ),
    Section("Examples", ("examples/index.md", "examples/*")),
    Section("Comparison", ("performance.md", "interop.md")),
    Section(
        "Contributing",
        ("contributing.md", "design/index.md", "design/decisions.md", "design/*", "reporting.md", "all-pages.md"),
    ),
)

OUTSIDE = ("index.md", "requirements/")
"""The start page, which comes first, and pages that have a list of their own and would make the navigation too long."""


def navigation(pages: Mapping[str, Page]) -> list[dict[str, Any]]:
    """The navigation as the generator reads it: `[{"Title": "path.md"}, {"Title": [...]}]`."""
    named = set(listed(SECTIONS))
    rest = [path for path in pages if path not in named and not path.startswith(OUTSIDE)]
    return [{"Start": "index.md"}, *(it for section in SECTIONS for it in written(section, pages, rest))]


def listed(entries: tuple[str | Section, ...]) -> Iterator[str]:
    """Every path that stands in the sections."""
    for entry in entries:
        if isinstance(entry, Section):
            yield from listed(entry.entries)
        elif not entry.endswith("*"):
            yield entry


def written(section: Section, pages: Mapping[str, Page], rest: list[str]) -> Iterator[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for entry in section.entries:
        if isinstance(entry, Section):
            entries += written(entry, pages, rest)
        else:
            paths = below(entry, rest) if entry.endswith("*") else [entry]
            entries += [{pages[path].title: path} for path in paths if path in pages]
    if entries:
        yield {section.title: entries}


def below(pattern: str, rest: list[str]) -> list[str]:
    """The pages that `folder/*` stands for; `*` alone stands for the pages of no folder."""
    folder = pattern.removesuffix("*")
    return [path for path in rest if path.startswith(folder) and (folder or "/" not in path)]


def reading_order(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Every path of a navigation with the title of its section."""
    for entry in entries:
        for title, inner in entry.items():
            if isinstance(inner, str):
                yield "", inner
            else:
                for _, path in reading_order(inner):
                    yield title, path
