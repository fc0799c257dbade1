"""Makes the site's tables of what version 2 adds, removes and changes, from the official schema's facts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

Facts = dict[str, Any]

PLAIN = ("AbsolutePath", "MediaType", "SessionListCursor")
"""Strings that version 2 only gives a name."""

MARKS = ("default-on-error", "default-on-null", "skip-invalid-items")
"""How a bad value is read: no part of what is sent."""

REPLACED = {
    "authenticate": "`auth/login`",
    "logout": "`auth/logout`",
    "session/load": "`session/resume` with `replayFrom`",
    "session/set_mode": "`session/set_config_option`",
    "fs/read_text_file": "the agent's own tools, or an MCP server of the client's",
    "fs/write_text_file": "the agent's own tools, or an MCP server of the client's",
    "terminal/create": "`terminal_update`: the agent runs it and reports it",
    "terminal/kill": "`terminal/cancel`, the other way round",
    "terminal/output": "`terminal_output_chunk`",
    "terminal/release": "nothing: the terminal is the agent's",
    "terminal/wait_for_exit": "`exitStatus` of a `terminal_update`",
    "tool_call": "`tool_call_update`",
    "plan": "`plan_update`",
    "current_mode_update": "`config_option_update`",
}
"""What does the work of a method or an update that is gone."""

SIDES = {"agent": "client to agent", "client": "agent to client", "proxy": "through proxies", "protocol": "both ways"}


def facts(version: int, stability: str = "unstable") -> Facts:
    found: Facts = json.loads(
        (ROOT / "packages" / "accord" / "tests" / "schema" / f"v{version}.{stability}.json").read_text()
    )
    return found


# Methods and updates


def methods() -> Iterator[str]:
    before, after, stable = facts(1)["methods"], facts(2)["methods"], facts(2, "stable")["methods"]
    yield from head("version 1", "version 2")
    for name in before:
        if name not in after:
            yield row(code(_bare(name)), REPLACED[_bare(name)])
    yield ""
    yield from head("new in version 2", "goes", "carries")
    for name, method in after.items():
        if name not in before:
            carried = " and ".join(
                code(method[role]) for role in ("request", "response", "notification") if role in method
            )
            yield row(code(_bare(name)) + unstable(name in stable), SIDES[method["side"]], carried)


def updates() -> Iterator[str]:
    before, after = _tags(facts(1)), _tags(facts(2))
    stable = _tags(facts(2, "stable"))
    yield from head("version 1", "version 2")
    for tag in before:
        if tag not in after:
            yield row(code(tag), REPLACED[tag])
    for tag in after:
        if tag not in before:
            yield row("", code(tag) + unstable(tag in stable))


def _tags(found: Facts) -> list[str]:
    return [variant.split("=")[1] for variant in found["types"]["SessionUpdate"]["variants"]]


def _bare(method: str) -> str:
    return method.rsplit(" (", 1)[0]


# Types


def changed_types() -> Iterator[str]:
    before, after = facts(1)["types"], facts(2)["types"]
    yield from head("type", "new", "gone", "changed")
    for name, described in after.items():
        if name in before and any(changes := _changes(before[name], described)):
            yield row(code(name), *(", ".join(part) for part in changes))


def _changes(before: Any, after: Any) -> tuple[list[str], list[str], list[str]]:
    if isinstance(before, str) and isinstance(after, str):
        return _word_changes(before, after)
    if isinstance(before, str) or isinstance(after, str):
        return [], [], []  # any JSON, once written as an object without fields
    new, old = _fields(after), _fields(before)
    added = [code(name) for name in new if name not in old]
    gone = [code(name) for name in old if name not in new]
    changed = [f"{code(name)}: {old[name]} → {said}" for name, said in new.items() if name in old and old[name] != said]
    return added, gone, changed


def _word_changes(before: str, after: str) -> tuple[list[str], list[str], list[str]]:
    old, new = (re.sub(r'"([-\w]+)"', r"\1", said).split("|") for said in (before, after))
    added = [code(word) for word in new if word not in (*old, "string", "any")]
    return added, [code(word) for word in old if word not in new], []


def _fields(described: Any) -> dict[str, str]:
    """An object's fields in a few words; or a union's variants, and the fields that all of them have."""
    if "variants" in described:
        variants = [_fields({"fields": fields}) for fields in described["variants"].values()]
        shared = {name: said for name, said in variants[0].items() if all(name in fields for fields in variants)}
        return dict.fromkeys(described["variants"], "") | shared
    return {name: _shape(said) for name, said in described["fields"].items() if name != "_meta"}


def _shape(said: str) -> str:
    kind, *rest = said.split(", ")
    for name in PLAIN:
        kind = re.sub(rf"\b{name}\b", "string", kind)
    words = [word for word in rest if word not in MARKS and word != "optional" and not word.startswith("default ")]
    return ", ".join([kind.removesuffix("|null").removeprefix("integer:").replace("|", " or "), *words])


# The page


def head(*titles: str) -> Iterator[str]:
    yield row(*titles)
    yield "|" + "---|" * len(titles)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def code(text: str) -> str:
    return f"`{text}`"


def unstable(is_stable: bool) -> str:
    return "" if is_stable else " (unstable)"
