"""Compares what a client's program printed for a step with what was expected of it. Pure.

An expectation is JSON. An object asks for at least its own fields; null for a field that is absent or null; a list for
exactly these items. `{"$contains": "x"}` asks for a text with this in it, `{"$any": true}` for anything but nothing,
`{"$length": n}` for a text this long. `updates`, `asked` and `told` name what has to be among them, in this order.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

AMONG = ("updates", "asked", "told")
SHOWN = 200


def problems_of(expected: Mapping[str, Any], line: Mapping[str, Any]) -> list[str]:
    """What is wrong with one step's outcome; nothing, if it is as expected."""
    expected = filled(expected, line.get("known", {}))
    found: list[str] = []
    if "error" in line and "error" not in expected:
        found.append(f"failed with {shown(line['error'])}")
    for key, pattern in expected.items():
        if key in AMONG:
            found += missing(key, pattern, line[key])
        elif key == "text":
            found += differences("text", pattern, spoken(line["updates"]))
        elif key == "words":
            found += differences("words", pattern, len(spoken(line["updates"]).split()))
        elif key == "numbered":
            found += unordered(pattern, line["updates"])
        else:
            found += differences(key, pattern, line.get(key))
    return found


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """An expectation with `<name>` replaced by what the script kept under that name."""
    if isinstance(value, str):
        return re.sub(r"<(\w+)>", lambda place: str(known.get(place[1], place[0])), value)
    if isinstance(value, list):
        return [filled(item, known) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: filled(item, known) for key, item in cast("dict[str, Any]", value).items()}
    return value


def spoken(updates: Sequence[Mapping[str, Any]]) -> str:
    """The agent's words in these updates."""
    chunks = (update for update in updates if update.get("sessionUpdate") == "agent_message_chunk")
    return "".join(chunk["content"].get("text", "") for chunk in chunks)


def unordered(count: int, updates: Sequence[Mapping[str, Any]]) -> list[str]:
    words = spoken(updates).split()
    if words == [str(number) for number in range(count)]:
        return []
    wrong = next((place for place, word in enumerate(words) if word != str(place)), len(words))
    return [f"{len(words)} of {count} numbered updates, wrong from {wrong} on: {words[wrong : wrong + 3]}"]


def missing(key: str, patterns: Sequence[Any], values: Sequence[Any]) -> list[str]:
    """Those of the patterns that nothing matches, when looked for in order."""
    rest = iter(values)
    for place, pattern in enumerate(patterns):
        if not any(not differences(key, pattern, value) for value in rest):
            near = sorted((differences(f"{key}[{place}]", pattern, value) for value in values), key=len)
            return [f"{key}[{place}] is missing or out of order: {shown(pattern)}", *(near[0][:1] if near else [])]
    return []


def differences(place: str, pattern: Any, value: Any) -> list[str]:
    """Where the value is not what the pattern asks for."""
    if isinstance(pattern, dict):
        return _of_object(place, cast("dict[str, Any]", pattern), value)
    if isinstance(pattern, list):
        items = cast("list[Any]", pattern)
        if not isinstance(value, list) or len(values := cast("list[Any]", value)) != len(items):
            return [f"{place}: {shown(value)} instead of {len(items)} items"]
        pairs = enumerate(zip(items, values, strict=True))
        return [found for index, (inner, item) in pairs for found in differences(f"{place}[{index}]", inner, item)]
    same = pattern == value and isinstance(pattern, bool) == isinstance(value, bool)
    return [] if same else [f"{place}: {shown(value)} instead of {shown(pattern)}"]


def _of_object(place: str, pattern: dict[str, Any], value: Any) -> list[str]:
    match pattern:
        case {"$any": True}:
            return [] if value is not None else [f"{place} is not there"]
        case {"$contains": str(part)}:
            return [] if isinstance(value, str) and part in value else [f"{place}: {shown(value)} without {part!r}"]
        case {"$length": length}:
            return (
                [] if isinstance(value, str) and len(value) == length else [f"{place}: {shown(value)} is not {length}"]
            )
        case _:
            pass
    if not isinstance(value, dict):
        return [f"{place}: {shown(value)} instead of an object"]
    fields = cast("dict[str, Any]", value)
    return [found for key, inner in pattern.items() for found in differences(f"{place}.{key}", inner, fields.get(key))]


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"
