"""Checks an author's value of a protocol type before it is sent.

A type of the protocol is a `msgspec.Struct`, which accepts any value for a field: a check in `__init__` would cost
every message that arrives and every chunk of a stream. So values are checked where an author passes them:
`turn.send(v1.ToolCall(3, "T"))`, a plan's entry, a request. The check converts the value to plain data and reads that
strictly. It copies no text, so its cost depends only on the number of fields: about ten microseconds.

The strict reader refuses an `Unknown` too, which may be sent. So a refused value is read tolerantly, and is valid if
nothing of it was changed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from accord.errors import DecodeError, EncodeError
from accord.mistakes import wrong_type
from accord.schema import codec, tolerant, v1
from accord.schema.base import JsonObject, Model, Unknown, Upsert
from accord.schema.shared_updates import TextDiff, ToolCallUpdate

CONTENT_BLOCKS = (
    v1.TextContent,
    v1.ImageContent,
    v1.AudioContent,
    v1.ResourceLink,
    v1.EmbeddedResource,
    v1.SkillReference,
    Unknown,
)
"""The classes of content; `Unknown` is a block of a newer protocol, which is passed on."""

_CHUNKS = v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk

_STEP = r" - at `(.*)`$"

T = TypeVar("T")


def check_sendable(call: str, value: Any) -> None:
    """Raise TypeError or ValueError for a value of the protocol that does not fit its type.

    >>> from accord.schema.v1 import PlanEntry
    >>> check_sendable("turn.plan()", PlanEntry("Look", "urgent", "pending"))
    Traceback (most recent call last):
    ValueError: turn.plan() got an invalid PlanEntry: invalid enum value 'urgent' at $.priority
    """
    cls = cast("type[object]", value.__class__)
    if not cls.__module__.startswith("accord.schema."):
        return  # a message of the author's own: its fields may need hooks that only its author knows
    codec.strict_decoder(cls)  # msgspec's first use of a class must not happen in two threads
    plain = codec.plain(value)
    try:
        msgspec.convert(plain, cls, dec_hook=tolerant.strictly)
    except msgspec.ValidationError as error:
        if not _survives_a_tolerant_reader(plain, cls):
            raise _refusal(call, cls.__name__, str(error)) from None


def _survives_a_tolerant_reader(plain: Any, cls: type[object]) -> bool:
    try:
        with tolerant.keeping_members():
            return bool(codec.plain(codec.convert(plain, cls)) == plain)
    except DecodeError:
        return False


def _refusal(call: str, name: str, problem: str) -> Exception:
    place = re.search(_STEP, problem)
    what = re.sub(_STEP, "", problem)
    text = f"{call} got an invalid {name}: {what[:1].lower()}{what[1:]}{f' at {place[1]}' if place else ''}"
    return TypeError(text) if what.startswith("Expected") else ValueError(text)


def check_meta(name: str, meta: object) -> None:
    """Raise TypeError unless this can be sent as `_meta`: None, or a dict of JSON values by name.

    >>> check_meta("prompt(meta=...)", {1: "one"})
    Traceback (most recent call last):
    TypeError: prompt(meta=...) takes a dict of JSON values by name, got dict {1: 'one'}
    """
    if meta is None:
        return
    members = cast("dict[object, object]", meta) if isinstance(meta, dict) else None
    if members is None or not all(isinstance(key, str) for key in members):
        raise wrong_type(name, "a dict of JSON values by name", cast("object", meta))
    try:
        codec.encode(meta)
    except EncodeError as error:
        raise TypeError(f"{name} takes a dict of JSON values by name; one value cannot be sent: {error}") from None


def with_meta(call: str, value: T, meta: JsonObject | None) -> T:
    """Return a value of the protocol with this `_meta`; unchanged for None. Raises TypeError as `check_meta` does."""
    if meta is None:
        return value
    check_meta(f"{call}(meta=...)", meta)
    return cast("T", replace(cast("Any", value), meta=meta))


def check_update(call: str, update: object) -> None:
    """Raise TypeError or ValueError unless this is a valid update of a session; chunks of messages are not checked."""
    if isinstance(update, _CHUNKS | Unknown):
        return
    if not isinstance(update, Model | Upsert) or update.__struct_config__.tag_field != "sessionUpdate":
        hint = "send a ToolCallProgress" if isinstance(update, ToolCallUpdate | v1.ToolCallUpdate) else ""
        raise wrong_type(call, "an update of a session, such as updates.PlanUpdate", update, hint)
    if isinstance(update, ToolCallUpdate) and update.content:
        diffs = [it for it in update.content if isinstance(it, TextDiff)]
        for diff in diffs:
            check_sendable(call, diff)
        if diffs:
            update = replace(update, content=[it for it in update.content if not isinstance(it, TextDiff)])
    check_sendable(call, update)


def content_block(call: str, content: Any) -> v1.ContentBlock:
    """Return content as a block; raises TypeError or ValueError for anything but text or a valid block."""
    if isinstance(content, str):
        return v1.TextContent(content)
    if isinstance(content, CONTENT_BLOCKS):
        if not isinstance(content, Unknown):
            check_sendable(call, content)
        return content
    raise wrong_type(call, "text or a content block", content, _hint_for(content))


def _hint_for(content: object) -> str:
    if isinstance(content, bytes):
        return "decode it first"
    if isinstance(content, Path):
        return "use v1.ResourceLink.to(path) for a link to a file"
    return ""
