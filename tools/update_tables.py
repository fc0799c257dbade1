"""Writes the table of docs/updates.md: every session update, and what sends it. The site's pages have the fields.

    python tools/update_tables.py            rewrite the marked part of the page
    python tools/update_tables.py --check    only say whether it is up to date

The table is read from the types of `accord.v1`. It begins with `<!-- generated: overview -->` and ends with
`<!-- end -->`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast, get_args, get_origin

import msgspec

from accord import v1
from accord.schema.base import Shape, Words, tag_of
from accord.schema.v1 import SessionUpdate

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "updates.md"

SENT_BY: dict[str, str] = {
    "agent_message_chunk": "`turn.say`",
    "agent_thought_chunk": "`turn.think`",
    "user_message_chunk": "`turn.say_as_user`, and the replay of a session",
    "tool_call": "`async with turn.tool(...)`",
    "tool_call_update": "the methods of `Tool`, and the end of its block",
    "plan": "`turn.plan`",
    "plan_update": "`turn.plan(..., id=)`, `turn.plan_document`",
    "plan_removed": "`remove` of such a plan",
    "available_commands_update": "`@agent.command`, `session.commands.offer` and `remove`",
    "current_mode_update": "`session.modes.set`",
    "config_option_update": "`session.config.offer`, `set` and `remove`",
    "session_info_update": "`session.set_title`",
    "usage_update": "`turn.usage`",
    "notice": "`turn.notice`",
    "compaction_update": "`session.compaction`",
    "compaction_summary_chunk": "`compaction.summary`",
    "subagent_update": "`turn.subagent`",
    "session_message": "`subagent.instruct`, `subagent.report`",
    "session_message_chunk": "`turn.send`",
    "cursor_update": "the agent itself, for each message",
    "prompt_suggestions_update": "`session.suggest`",
}
"""What an author calls to send each update."""


def variants() -> list[type[Shape]]:
    """The classes of all session updates, in the protocol's order."""
    union = get_args(SessionUpdate)[0]
    return list(get_args(union))


def overview() -> Iterator[str]:
    yield from head("update", "class", "what it tells", "an agent sends it with")
    for cls in variants():
        tag = str(tag_of(cls))
        yield row(code(tag), code(cls.__name__), summary(cls), SENT_BY[tag])


def notes(cls: type[Shape]) -> str:
    told = " Only proposed." if cls.__unstable__ else ""
    return told + (f" The client must declare {code(cls.__needs__)}." if cls.__needs__ else "")


def fields(cls: type[Shape], types: ModuleType = v1) -> Iterator[str]:
    """The table of a type's fields without `_meta`, for the site. `types` is the protocol's version."""
    shown = [field for field in msgspec.structs.fields(cls) if field.name != "meta"]
    if not shown:
        yield "No fields."
        return
    yield from head("field", "on the wire", "holds", "if left out")
    annotations = annotations_of(cls)
    for field in shown:
        yield row(code(field.name), code(field.encode_name), held(annotations[field.name], types), default(field))


def annotations_of(cls: type[Shape]) -> dict[str, str]:
    """The annotations of a class and its bases, as they stand in the source."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= {name: str(it) for name, it in vars(base).get("__annotations__", {}).items()}
    return found


def held(annotation: str, types: ModuleType = v1) -> str:
    """What a field holds, with the words that it may be."""
    text = plain(annotation)
    words = [f"{code(name)}: {', '.join(map(code, known))}" for name, known in words_in(text, types)]
    return code(text).replace("|", "\\|") + (f". {'; '.join(words)}" if words else "")


def plain(annotation: str) -> str:
    """An annotation in the words of the source, without the marks of tolerance."""
    text = annotation
    for mark in ("Tolerant", "Unstable", "NullAsDefault", "ReadOpen", "Open"):
        text = unwrapped(text, mark)
    text = text.replace("ValidItems[", "list[").replace("UnsetType | ", "").replace(" | UnsetType", "")
    return re.sub(r"Annotated\[(\w+), .*\]", r"\1", text)


def unwrapped(text: str, mark: str) -> str:
    """The text without `mark[` and the bracket that closes it."""
    while (start := text.find(f"{mark}[")) >= 0:
        depth, at = 1, start + len(mark) + 1
        while depth:
            depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
        text = text[:start] + text[start + len(mark) + 1 : at - 1] + text[at:]
    return text


def words_in(text: str, types: ModuleType = v1) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names in an annotation that stand for words, with the words."""
    for name in re.findall(r"\w+", text):
        alias = getattr(types, name, None)
        if get_origin(alias) is Literal:
            yield name, get_args(alias)
        elif known := next((it.known for it in getattr(alias, "__metadata__", ()) if isinstance(it, Words)), None):
            yield name, known


def default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return code(repr(cast("Callable[[], Any]", field.default_factory)()))
    if field.default is msgspec.NODEFAULT:
        return "*required*"
    return "stays as it was" if field.default is msgspec.UNSET else code(repr(field.default))


def reached() -> list[type[Shape]]:
    """The types that updates hold, also inside of others, in the order of their names."""
    seen: dict[str, type[Shape]] = {}
    waiting: list[type[Shape]] = variants()
    while waiting:
        for annotation in annotations_of(waiting.pop()).values():
            for cls in classes_in(annotation):
                if cls.__name__ not in seen and cls not in variants():
                    seen[cls.__name__] = cls
                    waiting.append(cls)
    return [seen[name] for name in sorted(seen)]


def classes_in(annotation: str) -> Iterator[type[Shape]]:
    for name in re.findall(r"\w+", annotation):
        yield from _classes(getattr(v1, name, None))


def _classes(hint: Any) -> Iterator[type[Shape]]:
    """The protocol's classes in a type: itself, or the variants of a union."""
    if isinstance(hint, type):
        if issubclass(hint, Shape):
            yield hint
        else:
            for variant in getattr(cast("object", hint), "__variants__", ()):
                yield from _classes(variant)
        return
    for inner in get_args(hint):
        yield from _classes(inner)


# The page


def summary(cls: type[Shape]) -> str:
    """The first sentence of a class's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n\n")[0].replace("\n", " ")


def head(*titles: str) -> Iterator[str]:
    yield row(*titles)
    yield "|" + "---|" * len(titles)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def code(text: str) -> str:
    return f"`{text}`"


def updated(page: str) -> str:
    """The page with the table as it should be."""
    begin, end = "<!-- generated: overview -->\n", "<!-- end -->"
    before, _, rest = page.partition(begin)
    return before + begin + "\n".join([*overview(), end]) + rest.partition(end)[2]


def main() -> None:
    page = PAGE.read_text()
    if updated(page) == page:
        return
    if "--check" in sys.argv:
        sys.exit(f"{PAGE.name} is not up to date: run python tools/update_tables.py")
    PAGE.write_text(updated(page))


if __name__ == "__main__":
    main()
