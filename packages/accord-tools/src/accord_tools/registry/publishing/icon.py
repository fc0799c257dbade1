"""The registry's rules for an icon: a square SVG of 16 by 16 in the colour of the text around it. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal
from xml.parsers import expat

from accord_tools.registry.publishing.findings import Finding

SIDE = 16.0
LARGEST = 64 * 1024
PAINTS = ("fill", "stroke")
ALLOWED = {"currentcolor", "none", "inherit"}
_LENGTH = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:px)?\s*")
_DECLARED = re.compile(r"(?<![\w-])(fill|stroke|color|stop-color)\s*:\s*([^;}!]+)", re.IGNORECASE)

SKELETON = """\
<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16" fill="none">
  <path d="M3 4l4 4-4 4M8 12h5" stroke="currentColor" stroke-width="1.5" stroke-linecap="round"/>
</svg>
"""
"""An icon to begin with."""


class _EntityDeclared(Exception): ...


class _Reader:
    """What a reader of XML has seen of an icon."""

    def __init__(self) -> None:
        self.root: tuple[str, dict[str, str]] | None = None
        self.paints: list[tuple[str, str]] = []
        self.comments = 0
        self._style: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        plain = name.rpartition(":")[2]
        if self.root is None:
            self.root = (plain, attributes)
        self.paints += [(key, value) for key, value in attributes.items() if key in PAINTS]
        self.paints += _DECLARED.findall(attributes.get("style", ""))
        self._style = [] if plain == "style" else self._style

    def text(self, data: str) -> None:
        if self._style is not None:
            self._style.append(data)

    def end(self, name: str) -> None:
        if name.rpartition(":")[2] == "style" and self._style is not None:
            self.paints += _DECLARED.findall("".join(self._style))
            self._style = None


def check_icon(data: bytes, file: str) -> list[Finding]:
    """What is wrong with an icon."""
    return [Finding(file, "", "icon", message, level) for message, level in _problems(data)]


def _problems(data: bytes) -> Iterator[tuple[str, Literal["error", "warning"]]]:
    if len(data) > LARGEST:
        yield f"must have at most {LARGEST:,} bytes, has {len(data):,}", "error"
        return
    try:
        seen = _read(data)
    except _EntityDeclared:
        yield "must not declare entities", "error"
        return
    except expat.ExpatError as error:
        yield f"must be well-formed XML: {expat.ErrorString(error.code)} in line {error.lineno}", "error"
        return
    if seen.root is None or seen.root[0] != "svg":
        yield f"must have the root element svg, got {seen.root[0] if seen.root else 'nothing'}", "error"
        return
    if seen.comments:
        yield "must have no comments", "error"
    yield from _sides(seen.root[1])
    wrong = sorted({f"{key}={value.strip()}" for key, value in seen.paints if value.strip().lower() not in ALLOWED})
    if wrong:
        yield f"must have only currentColor, none and inherit as colours, got {', '.join(wrong[:5])}", "error"
    if not any(value.strip().lower() == "currentcolor" for _, value in seen.paints):
        yield "must use currentColor, so that it is seen on any background", "error"


def _read(data: bytes) -> _Reader:
    seen = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = seen.start
    parser.EndElementHandler = seen.end
    parser.CharacterDataHandler = seen.text

    def comment(_: str) -> None:
        seen.comments += 1

    def entity(*_: object) -> None:
        raise _EntityDeclared  # entities within entities could fill the memory

    parser.CommentHandler = comment
    parser.EntityDeclHandler = entity
    parser.Parse(data, True)
    return seen


def _sides(root: dict[str, str]) -> Iterator[tuple[str, Literal["error", "warning"]]]:
    """The width and the height of the root, or those of its view box."""
    given = [_number(root.get("width")), _number(root.get("height"))]
    box = [_number(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip())] if "viewBox" in root else []
    sides = given if None not in given else box[2:4] if len(box) == 4 else []
    if len(sides) != 2 or None in sides:
        yield "must say its size by width and height or by viewBox", "error"
    elif sides != [SIDE, SIDE]:
        yield f"must be 16 by 16, got {sides[0]:g} by {sides[1]:g}", "error"


def _number(text: str | None) -> float | None:
    found = _LENGTH.fullmatch(text) if text is not None else None
    return float(found[1]) if found else None
