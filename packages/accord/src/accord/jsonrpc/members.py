"""The members of an object that is not quite a message, read with care and in linear time.

    text ──▶ members_of ──▶ Members: each member's text, none of them read ──▶ value_of ──▶ a plain value
         └─ no JSON, or too much of it ──▶ outline: what its start and its end say

`members_of` is one pass of msgspec's decoder, which passes over what has no name here without making values of it. So
an unknown member costs its bytes and nothing else, whatever it holds.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw

from accord.jsonrpc.line_frames import Outline
from accord.jsonrpc.structure_limits import DAMAGED, SMALL

if TYPE_CHECKING:
    RawOrNone: TypeAlias = Raw | None
else:
    RawOrNone = Raw  # msgspec keeps a value raw only where the type is Raw alone

MOST_HALVES = 200_000
"""Escaped halves of emoji that one message may hold if one of them has no other half. Each takes about 50 ns."""

HEAD = 16 * 1024
"""Bytes at the start of an unreadable message that are searched for its id."""
TAIL = 1024
"""Bytes at its end that are searched, too: some peers write the id last."""


class Members(msgspec.Struct, gc=False):
    """The text of each member; None for one that is absent. A null is the text `null`."""

    jsonrpc: RawOrNone = None
    method: RawOrNone = None
    params: RawOrNone = None
    id: RawOrNone = None
    result: RawOrNone = None
    error: RawOrNone = None

    def values(self) -> dict[str, Any]:
        """The values of the members that are there. Params and results are only told apart: an object is empty."""
        return {
            name: _kind_of(raw) if name in _KEPT_RAW else value_of(raw)
            for name in self.__struct_fields__
            if (raw := getattr(self, name)) is not None
        }


class TooDamagedError(ValueError):
    """Text that is not repaired, because that would take too long. Its text says why."""


def members_of(frame: bytes) -> Members | None:
    """The members of this object; None for JSON that is something else. Raises what msgspec raises, or TooDamagedError.

    Damaged text is repaired, in several passes. A long text is tried without them first: most are whole, and have only
    a member without a name here.
    """
    if len(frame) > SMALL:
        try:
            return _strict_members_of(frame.removeprefix(_BOM))
        except (msgspec.DecodeError, UnicodeDecodeError):
            _refuse_long_repairs(frame)
    if not frame.isascii():
        frame = frame.decode("utf-8-sig", "replace").encode()
    masked = _masked(frame)
    members = _strict_members_of(masked)
    if isinstance(masked, bytearray):
        masked[:] = frame  # the members are views of it, so they have their own text again
    return members


def _strict_members_of(text: bytes | bytearray) -> Members | None:
    try:
        return _decode(text)
    except msgspec.ValidationError:
        _skip(text)
        return None


def value_of(raw: Raw) -> Any:
    """The plain value of this text: halves of emoji and numbers of any size are as good as others.

    Raises TooDamagedError.
    """
    try:
        return _decode_value(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        damaged = bytes(raw)
        _refuse_long_repairs(damaged)
        text = damaged.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # more digits than Python converts; JSON sets no bound
        return json.loads(text, parse_int=float)


def outline(frame: bytes) -> dict[str, Any]:
    """The members of an unreadable message, as far as its start and its end show them."""
    seen = Outline()
    seen.feed(frame[:HEAD])
    members = seen.members() or seen.unfinished()
    if len(frame) > HEAD and "id" not in members and (found := _LAST_ID.search(frame[-TAIL:])):
        members["id"] = json.loads(found[1].decode("utf-8", "replace"))
    return members


def _kind_of(raw: Raw) -> Any:
    first = bytes(memoryview(raw)[:1])
    return {} if first == b"{" else None if first == b"n" else first


def _refuse_long_repairs(text: bytes) -> None:
    halves = text.count(b"\\ud") + text.count(b"\\uD")
    if halves > MOST_HALVES:
        raise TooDamagedError(f"half an emoji, and more than {MOST_HALVES:,} of them in one message: send fewer")
    if len(text) > _MOST_REPAIRED:
        damage = "half an emoji" if halves else "not JSON"
        raise TooDamagedError(f"{damage}, in more than {_MOST_REPAIRED:,} bytes: only shorter text is repaired")


def _masked(frame: bytes) -> bytes | bytearray:
    """This text with a letter of as many bytes in place of each half of an emoji, paired or not.

    msgspec refuses a half even in what it passes over. The names that matter have none, so they are found as before.
    """
    if b"\\ud" not in frame and b"\\uD" not in frame:
        return frame
    return bytearray(frame.replace(b"\\ud", b"\\uc").replace(b"\\uD", b"\\uC"))


_BOM = b"\xef\xbb\xbf"
_MOST_REPAIRED = DAMAGED.length or 0
_KEPT_RAW = ("params", "result")
_LAST_ID = re.compile(rb',\s*+"id"\s*+:\s*+(-?[0-9]{1,18}|"[^"\\]{0,256}+")\s*+\}\s*+\Z')

_decode = msgspec.json.Decoder(Members).decode
_skip = msgspec.json.Decoder(Raw).decode
_decode_value = msgspec.json.Decoder().decode
