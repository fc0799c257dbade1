"""Checks arguments where they are given, so that an error names the argument and the line that passed it.

A wrong type raises TypeError, a wrong value ValueError. Each text has the same form: `turn.say() takes text or a
content block, got int 5`. Only what people write by hand is checked; the text of a stream takes no step more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, cast

from accord.errors import EncodeError
from accord.mistakes import check_handler, meant, place_of
from accord.schema import codec, v1
from accord.schema.base import Model, Unknown, Upsert
from accord.schema.sendable import check_sendable

CONTENT_BLOCKS = (
    v1.TextContent,
    v1.ImageContent,
    v1.AudioContent,
    v1.ResourceLink,
    v1.EmbeddedResource,
    Unknown,
)
"""The classes of content; `Unknown` is a block of a newer protocol, which is passed on."""

_CHUNKS = v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk

_LONGEST = 60


def shown(value: object) -> str:
    """A value with its type, short enough for one line of an error.

    >>> shown(5), shown(None), shown("sure?")
    ('int 5', 'None', "str 'sure?'")
    """
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{type(value).__name__} {shortened(repr(value))}"


def wrong_type(call: str, takes: str, value: object, hint: str = "") -> TypeError:
    """The error for a value of a wrong type.

    >>> str(wrong_type("turn.say()", "text or a content block", 5))
    'turn.say() takes text or a content block, got int 5'
    """
    return TypeError(f"{call} takes {takes}, got {shown(value)}{hint and f'; {hint}'}")


def check_text(call: str, value: object) -> None:
    """Raise TypeError unless this is text."""
    if not isinstance(value, str):
        raise wrong_type(call, "text", value)


def check_path(name: str, value: object) -> None:
    """Raise TypeError for what is neither text nor a Path."""
    if not isinstance(value, str | Path):
        raise wrong_type(name, "a path, as text or a Path", value)


def check_sequence(name: str, of: str, value: object) -> None:
    """Raise TypeError unless this is a collection of values; a single text, a collection of letters, is refused too."""
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        raise wrong_type(name, f"a list of {of}", value, f"write [{value!r}]" if isinstance(value, str) else "")


def check_callable(call: str, value: object) -> None:
    """Raise TypeError for what cannot be called, such as the result of a function in the function's place."""
    if not callable(value):
        raise wrong_type(call, "a function", value)


def check_word(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise ValueError for a word that is not allowed, with the one that may have been meant.

    >>> check_word("remember", "sesion", ["session", "agent"])
    Traceback (most recent call last):
    ValueError: remember must be one of session, agent, got 'sesion'; did you mean session?
    """
    words = list(allowed)
    if not isinstance(value, str):
        raise wrong_type(name, f"one of {', '.join(words)}", value)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {shortened(repr(value))}{meant(value, words)}")


def check_extensible_word(name: str, value: object, allowed: Collection[str]) -> None:
    """The same for a word of which programs may have their own, which begin with an underscore."""
    if value not in allowed and not (isinstance(value, str) and value.startswith("_")):
        check_word(name, value, allowed)


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


def check_update(call: str, update: object) -> None:
    """Raise TypeError or ValueError unless this is a valid update of a session; chunks of messages are not checked."""
    if isinstance(update, _CHUNKS | Unknown):
        return
    if not isinstance(update, Model | Upsert):
        raise wrong_type(call, "an update of a session, such as v1.Plan", update)
    check_sendable(call, update)


def content_block(call: str, content: Any) -> v1.ContentBlock:
    """Content as a block; raises TypeError or ValueError for what is neither text nor a good block."""
    if isinstance(content, str):
        return v1.TextContent(content)
    if isinstance(content, CONTENT_BLOCKS):
        if not isinstance(content, Unknown):
            check_sendable(call, content)
        return content
    raise wrong_type(call, "text or a content block", content, _hint_for(content))


def shortened(text: str) -> str:
    """A text for one line of an error or a `repr`."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _hint_for(content: object) -> str:
    if isinstance(content, bytes):
        return "decode it first"
    if isinstance(content, Path):
        return "use v1.ResourceLink.to(path) for a link to a file"
    return ""


def registered_once(what: str, before: Callable[..., Any] | None, function: Callable[..., Any]) -> None:
    """Raise ValueError for a second function in a place that has room for one, and TypeError for one that does not fit.

    >>> registered_once("@agent.on_prompt", None, lambda: None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: @agent.on_prompt calls its function with (turn), and <lambda>() in ..., line 1, takes ()
    """
    check_handler(what, function)
    if before is not None and before is not function:
        raise ValueError(
            f"{what} was used twice: {place_of(before)}, is registered already; {place_of(function)}, would replace it"
        )
