"""A page for each kind of session update, with its fields in both versions of the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast, get_args

from tools.update_tables import SENT_BY, fields, notes, reached, summary
from tools.website.page import Page
from tools.website.update_examples import EXAMPLES, Wire

from accord import v1, v2
from accord.schema import codec
from accord.schema.base import Shape, tag_of
from accord.schema.v1 import SessionUpdate as UpdateV1
from accord.schema.v2 import SessionUpdate as UpdateV2

Kinds = dict[str, dict[int, type[Shape]]]

TYPES: dict[int, ModuleType] = {1: v1, 2: v2}
UNIONS = {1: UpdateV1, 2: UpdateV2}
NAMES = {1: "Version 1", 2: "Version 2 (draft)"}


def kinds() -> Kinds:
    """The class of each kind of update, by version."""
    found: Kinds = {}
    for version, union in UNIONS.items():
        for cls in get_args(get_args(union)[0]):
            found.setdefault(str(tag_of(cls)), {})[version] = cls
    return found


def update_pages() -> Iterator[Page]:
    lines = [
        "# Every session update",
        "",
        "A page for each kind of update, with its fields in both versions of the protocol.",
        "[Session updates](../updates.md) explains how they are sent and read, [the types of their",
        "fields](types-of-fields.md) has what they hold.",
        "",
        "| update | version 1 | version 2 | what it tells |",
        "|---|---|---|---|",
    ]
    for tag, classes in kinds().items():
        has = ["yes" if version in classes else "" for version in UNIONS]
        about = summary(next(iter(classes.values()))).replace("|", "\\|")
        lines.append(f"| [`{tag}`]({tag}.md) | {has[0]} | {has[1]} | {about} |")
        yield Page(f"session-updates/{tag}.md", page_of(tag, classes))
    yield Page("session-updates/index.md", "\n".join([*lines, ""]))
    yield Page("session-updates/types-of-fields.md", types_page())


def types_page() -> str:
    """The types that the updates of version 1 hold, also inside of others."""
    lines = ["# The types of the fields", "", "What [session updates](index.md) hold, in `accord.v1`.", ""]
    for cls in reached():
        lines += [f"## {cls.__name__}", "", f"{summary(cls)}{notes(cls)}", "", *fields(cls), ""]
    return "\n".join(lines)


def page_of(tag: str, classes: dict[int, type[Shape]]) -> str:
    lines = [f"# {tag}", "", summary(next(iter(classes.values()))), ""]
    if tag in SENT_BY:
        lines += [f"An agent sends it with {SENT_BY[tag]}.", ""]
    for version, cls in classes.items():
        lines += [f"## {NAMES[version]}", "", f"`v{version}.{cls.__name__}`. {summary(cls)}{notes(cls)}", ""]
        lines += [*fields(cls, TYPES[version]), "", "On the wire, for example:", "", *wire(tag, version, cls), ""]
    return "\n".join(lines)


def wire(tag: str, version: int, cls: type[Shape]) -> list[str]:
    """An example of an update as JSON; it is read with the codec, so it is one."""
    value = {"sessionUpdate": tag, **EXAMPLES[version][tag]}
    text = json.dumps(value, indent=2)
    read = codec.plain(codec.decode(json.dumps(value).encode(), cls))
    if not is_kept(value, read):  # a field that the type does not know, or whose value it does not allow
        raise SystemExit(f"the example of {tag} in tools/website/update_examples.py is read as {read}")
    return ["```json", text, "```"]


def is_kept(given: Any, read: Any) -> bool:
    """Whether everything in a JSON value was read; what was read may hold more, such as defaults."""
    if isinstance(given, dict):
        members = cast("Wire", given)
        return isinstance(read, dict) and all(it in read and is_kept(members[it], read[it]) for it in members)
    if isinstance(given, list):
        items, found = cast("list[Any]", given), cast("list[Any]", read)
        return isinstance(read, list) and len(items) == len(found) and all(map(is_kept, items, found))
    return bool(given == read)
