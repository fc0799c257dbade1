"""Models as plain values and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import msgspec

if TYPE_CHECKING:
    from accord.compat.models.fields import Field, Plan


def names_of(model: Any) -> Iterable[str]:
    """The names of all fields of a model, and of other members that it keeps."""
    known, given = fields_of(model), cast("dict[str, Any]", vars(model))
    return [*known, *(name for name in given if name not in known and not name.startswith("_"))]


def dump(
    model: Any,
    *,
    mode: str = "python",
    by_alias: bool | None = None,
    exclude_none: bool = False,
    exclude_unset: bool = False,
    exclude_defaults: bool = False,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    **_: Any,
) -> Any:
    """The model as plain values.

    `by_alias` takes the names of the wire. `exclude_none`, `exclude_unset` and `exclude_defaults` leave out fields
    that are None, were not given, or hold their default. `mode="json"` leaves only values that JSON has.
    """

    def plain(value: Any) -> Any:
        if is_model(value):
            return walk(value, None, None)
        if isinstance(value, dict):
            return {key: plain(each) for key, each in cast("dict[Any, Any]", value).items()}
        if isinstance(value, (list, tuple)):
            items = [plain(each) for each in cast("list[Any]", value)]
            return tuple(items) if isinstance(value, tuple) and mode != "json" else items
        return msgspec.to_builtins(value, enc_hook=json_form) if mode == "json" else value

    def walk(of: Any, only: Collection[str] | None, without: Collection[str] | None) -> Any:
        given = cast("dict[str, Any]", vars(of))
        fields = fields_of(of)
        made: dict[str, Any] = {}
        for name in given if exclude_unset else names_of(of):
            if (only is not None and name not in only) or (without is not None and name in without):
                continue
            value = getattr(of, name)
            field = fields.get(name)
            if exclude_none and value is None:
                continue
            if exclude_defaults and field is not None and not field.required and value == field.default:
                continue
            made[field.alias if by_alias and field is not None else name] = plain(value)
        return made["root"] if is_root(of) else made

    return walk(model, include, exclude)


def text(value: Any, indent: int | None) -> str:
    """Plain values as JSON text."""
    if indent is None:
        return msgspec.json.encode(value).decode()
    return json.dumps(value, ensure_ascii=False, indent=indent)


def is_model(value: Any) -> bool:
    """Whether this is one of our models."""
    return hasattr(cast("type[Any]", type(value)), "model_plan")


def is_root(value: Any) -> bool:
    """Whether this is a model that stands for its `root`."""
    return [*fields_of(value)] == ["root"]


def fields_of(model: Any) -> dict[str, Field]:
    """The fields of a model, by name."""
    cls: Any = cast("Any", type(model))
    fields: dict[str, Field] = cls.model_plan().fields
    return fields


def json_form(value: Any) -> Any:
    """What to write for an object that JSON has no form for: a model without what was not given, or is None."""
    plan: Plan | None = getattr(cast("Any", type(value)), "__plan_made__", None)
    if plan is not None:
        if plan.is_root:
            return value.root
        aliases = plan.aliases
        given: dict[str, Any] = value.__dict__
        return {aliases.get(name, name): each for name, each in given.items() if each is not None}
    if hasattr(value, "model_dump"):  # a model of pydantic's, in a field that takes any value
        return value.model_dump(mode="json")
    if isinstance(value, PurePath) or hasattr(value, "unicode_string"):
        return str(value)
    raise TypeError(f"values of type {type(value).__name__} have no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=json_form)


def encode(value: Any) -> bytes:
    """A value that may hold models as JSON, without the fields that are None or were not given."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # half an emoji, which UTF-8 cannot express and a JSON escape can
        plain = msgspec.to_builtins(value, enc_hook=json_form)
        return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode("ascii")
