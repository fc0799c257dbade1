"""Typed values from JSON and back.

    decode(data, type)                           encode(value)
      strict msgspec decoder  ── refused ──▶ tolerant reader       msgspec encoder ── lone surrogate ──▶ json
      (all good traffic)                     (marks, Unknown, halves of emoji)

For any bytes, `decode` returns a value of the type or raises `DecodeError`, which locates the fault by the names of the
wire. For any value, `encode` returns JSON or raises `EncodeError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast, overload

import msgspec

from accord.errors import DecodeError, EncodeError
from accord.jsonrpc.chunked_decode import Sliced
from accord.jsonrpc.frame_structure import DAMAGED, MISFIT, excess
from accord.schema import tolerant
from accord.schema.base import HasUnknownMembers, Json, Unknown, UnknownMembers, merged
from accord.schema.type_tree import OneWord, fields_of

T = TypeVar("T")

ENCODE_REFUSALS = (UnicodeEncodeError, TypeError, ValueError, RecursionError)
"""The errors of `strict_encode`. The engine's fast path catches them, and calls `encode`."""

REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of a strict decoder. The engine's fast path catches them, and calls `decode`."""

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


@overload
def decode(data: bytes | msgspec.Raw, type: type[T]) -> T: ...
@overload
def decode(data: bytes | msgspec.Raw, type: Any) -> Any: ...
def decode(data: bytes | msgspec.Raw, type: Any) -> Any:
    """Decode JSON text into a value of this type, tolerantly.

    >>> from accord.schema.v1 import TextContent
    >>> decode(b'{"type":"text","text":"hi","annotations":"nonsense"}', TextContent)
    TextContent(text='hi')
    """
    try:
        if data.__class__ is Sliced:
            return tolerant.convert_strictly(cast("Sliced", data).value, type)
        return (_decoders.get(type) or _decoder(type)).decode(data)
    except REFUSALS:
        if problem := excess(data, MISFIT):
            raise DecodeError("$", f"not of the expected form, and {problem}") from None
        return convert(loads(data), type)


@overload
def convert(value: Json, type: type[T]) -> T: ...
@overload
def convert(value: Json, type: Any) -> Any: ...
def convert(value: Json, type: Any) -> Any:
    """Convert plain dictionaries and lists into a value of this type, tolerantly."""
    try:
        return tolerant.read(type, value)
    except tolerant.Misfit as misfit:
        raise DecodeError(misfit.path(), misfit.problem) from None
    except tolerant.TooManyRepairs:
        problem = f"more than {tolerant.MOST_REPAIRS:,} values are damaged or unknown: send fewer in one message"
        raise DecodeError("$", problem) from None
    except RecursionError:
        raise DecodeError("$", "nested too deeply") from None


@overload
def decode_keeping(data: bytes | msgspec.Raw, type: type[T]) -> T: ...
@overload
def decode_keeping(data: bytes | msgspec.Raw, type: Any) -> Any: ...
def decode_keeping(data: bytes | msgspec.Raw, type: Any) -> Any:
    """Decode JSON text as `decode` does, and keep the members that the types do not know: `encode` writes them back.

    It is for values that are passed on: it costs 5 us for a small message, and 18 us if an object has such members.

    >>> from accord.schema.v1 import TextContent
    >>> encode(decode_keeping(b'{"type":"text","text":"hi","tone":"warm"}', TextContent))
    b'{"type":"text","text":"hi","tone":"warm"}'
    """
    value, raw = decode(data, type), loads(data)
    if plain(value) == raw:
        return value
    return convert_keeping(raw, type)


def convert_keeping(value: Json, type: Any) -> Any:
    """`convert`, and keep the members that the types do not know."""
    with tolerant.keeping_members():
        return convert(value, type)


def loads(data: bytes | msgspec.Raw) -> Json:
    """Return plain values from JSON text, including text that msgspec refuses: with halves of emoji or
    invalid UTF-8.
    """
    if data.__class__ is Sliced:
        return cast("Sliced", data).value
    try:
        return _plain_decoder.decode(data)
    except REFUSALS:
        pass
    if problem := excess(data, DAMAGED):
        raise DecodeError("$", f"not JSON, and {problem}")
    text = bytes(data)
    import json  # few programs get such a text

    try:
        return json.loads(
            text.decode("utf-8", "replace").removeprefix("\ufeff"), parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        raise DecodeError("$", "nested too deeply") from None
    except ValueError as error:  # also for an integer with more digits than Python converts
        raise DecodeError("$", f"not JSON: {error}") from None


def encode(value: Any) -> bytes:
    """Encode a value as JSON, on one line.

    >>> from accord.schema.v1 import AgentMessageChunk
    >>> encode(AgentMessageChunk.of("hi"))
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}'
    """
    cls = cast("type[object]", type(value))
    closed = _closed_words.get(cls)
    if closed is None:
        closed = closed_words(cls)
    if closed:
        _refuse_unknown_words(value, closed)
    try:
        return strict_encode(value)
    except (UnicodeEncodeError, HasUnknownMembers):
        return _encode_plain(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodeError(f"{type(value).__name__} cannot be written as JSON: {error}") from error


def plain(value: Any) -> Json:
    """Convert a value into plain dictionaries and lists, in the form of the wire."""
    try:
        try:
            return msgspec.to_builtins(value, enc_hook=_encode_special)
        except HasUnknownMembers:
            return merged(msgspec.to_builtins(value, enc_hook=_plain_special))
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodeError(f"{type(value).__name__} cannot be written as JSON: {error}") from error


def strict_decoder(type: Any) -> Callable[[bytes | msgspec.Raw], Any]:
    """The strict half of `decode` for this type; raises one of `REFUSALS` where `decode` would read tolerantly."""
    return (_decoders.get(type) or _decoder(type)).decode


def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    made = _decoders[type] = tolerant.decoder_of(type)
    return made


def _encode_special(value: Any) -> Any:
    if isinstance(value, Unknown):
        return value.raw
    if isinstance(value, UnknownMembers):
        raise HasUnknownMembers
    raise TypeError(f"values of type {type(value).__name__} have no JSON form")


def _plain_special(value: Any) -> Any:
    return value.members if isinstance(value, UnknownMembers) else _encode_special(value)


def _encode_plain(value: Any) -> bytes:
    """Encode a value with unknown members, or with half an emoji: UTF-8 cannot express it, but a JSON escape can."""
    try:
        data = plain(value)
        try:
            return strict_encode(data)
        except UnicodeEncodeError:
            import json

            return json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (ValueError, RecursionError) as error:
        raise EncodeError(f"{type(value).__name__} cannot be written as JSON: {error}") from error


def closed_words(cls: Any) -> dict[str, tuple[str, ...]]:
    """The fields of this type that `encode` checks (see `ReadOpen`)."""
    if (known := _closed_words.get(cls)) is not None:
        return known
    closed: dict[str, tuple[str, ...]] = {}
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        for field in fields_of(cls):
            if isinstance(field.node, OneWord) and field.node.read_open:
                closed[field.name] = field.node.known
    _closed_words[cls] = closed
    return closed


def _refuse_unknown_words(value: Any, closed: dict[str, tuple[str, ...]]) -> None:
    for name, known in closed.items():
        if (word := getattr(value, name)) not in known:
            raise EncodeError(f"{type(value).__name__}.{name} must be one of {', '.join(known)}, got {word!r}")


strict_encode = msgspec.json.Encoder(enc_hook=_encode_special).encode
"""The fast half of `encode`; raises one of `ENCODE_REFUSALS` where `encode` would try another way or explain why."""

_plain_decoder: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_closed_words: dict[Any, dict[str, tuple[str, ...]]] = {}
"""The fields of a type that may be read with any word, and written only with these (see `ReadOpen`)."""


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("number out of range")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


class _OnlyUpdate(msgspec.Struct):
    update: msgspec.Raw


_only_update = msgspec.json.Decoder(_OnlyUpdate)


def update_json(params: bytes | msgspec.Raw) -> bytes:
    """The update in these params, byte for byte where msgspec can find its end."""
    try:
        return bytes(_only_update.decode(params).update)
    except REFUSALS:
        # Half a surrogate pair, or invalid UTF-8: encoded again, the update means the same.
        return encode(loads(params)["update"])
