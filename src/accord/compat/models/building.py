"""Makes the models: each from our type of the same thing, when a program first asks for it."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

import msgspec

from accord.compat.models import names, shapes
from accord.compat.models.checks import Check, ModelNamed, check_of
from accord.compat.models.fields import Field, field_of, tag_field
from accord.compat.models.invalid import Misfit
from accord.compat.models.model import BaseModel, RootModel
from accord.schema import hints, v1
from accord.schema.base import tag_of

_SOURCES = {source: variant for variant, source in names.VARIANTS.items()}


class _Models:
    """The models that were made so far, by their names in the official SDK."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """What has this name; None if nothing has it."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    # What checks ask for

    def model_for(self, cls: type[msgspec.Struct]) -> Any:
        """The model that stands for this type inside another one."""
        return self.get(_SOURCES.get(cls.__name__, cls.__name__))

    def other_than(self, cls: type[msgspec.Struct]) -> Any:
        """The model of a variant that a union with this one does not know; None if such a value is an error."""
        other = names.OTHERS.get(cls.__name__)
        return None if other is None else self.get(other)

    # Making

    def _make(self, name: str) -> Any:
        if name in names.UNIONS:
            return Union[tuple(self.get(each) for each in names.UNIONS[name])]  # noqa: UP007 it is made at run time
        if name in names.LITERALS:
            return Literal[typing.get_args(getattr(v1, name))]
        if name in names.ROOTS or name in shapes.RESPONSES:
            return self._root(name)
        source = _source(name)
        return None if source is None else self._model(name, source)

    def _root(self, name: str) -> Any:
        inner = shapes.RESPONSES.get(name) or _named(names.ROOTS[name])

        def learn() -> tuple[list[Field], dict[str, str]]:
            return [Field("root", "root", hints.node_of(inner), self)], {}

        return _class(name, RootModel, learn, f"`{name}`: its `root` is the value.")

    def _model(self, name: str, source: type[msgspec.Struct]) -> Any:
        base = names.BASES.get(name)

        def learn() -> tuple[list[Field], dict[str, str]]:
            hidden = names.HIDDEN.get(name, ())
            known = [field for field in hints.fields_of(source) if field.name not in hidden]
            empty = names.EMPTY_BY_DEFAULT.get(name)
            fields = [self._special(name, field_of(field, self, empty=field.name == empty)) for field in known]
            tag, alias = tag_of(source), source.__struct_config__.tag_field
            if tag is None or alias is None or not _shows_tag(name, source):
                return fields, {}
            snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(alias))
            return [tag_field(snake, str(alias), tag, self), *fields], {snake: tag}

        made = _class(name, BaseModel if base is None else self.get(base), learn, source.__doc__)
        made.model_keeps_others = name in names.OPEN
        return made

    def _special(self, name: str, field: Field) -> Field:
        if name == "InitializeRequest" and field.name == "protocol_version":
            return Field(field.name, field.alias, field.node, self, check=_version)
        if (name, field.name) == ("AvailableCommand", "input"):
            node = ModelNamed("AvailableCommandInput")
            return Field(field.name, field.alias, node, self, required=False, salvages=True)
        unknown = shapes.UNKNOWN_VARIANTS.get(name)
        if unknown is not None and field.name == unknown[0]:
            word = functools.partial(_unknown_word, unknown[1])
            return Field(field.name, field.alias, field.node, self, check=word)
        return field


def _shows_tag(name: str, source: type[msgspec.Struct]) -> bool:
    """Whether the model has the tag as a field: a variant has, and what other models derive from has not."""
    return name in names.VARIANTS or source.__name__ not in _SOURCES


def _class(name: str, base: Any, learn: Callable[[], Any], doc: str | None) -> Any:
    namespace = {
        "__slots__": (),
        "__doc__": doc,
        "__module__": "accord.compat.acp.schema",
        "model_learn": staticmethod(learn),
    }
    return type(name, (base,), namespace)


def _source(name: str) -> type[msgspec.Struct] | None:
    """The type of ours that a model is made from."""
    found = shapes.ENVELOPES.get(name) or _named(names.VARIANTS.get(name, name))
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None


def _named(name: str) -> Any:
    if name.startswith("_"):
        return None
    return getattr(shapes, name, None) or getattr(v1, name, None)


def _version(value: Any) -> int:
    """A version of the protocol: clients of before its first release send a date, which counts as version 1."""
    if isinstance(value, str) and not value.isdigit():
        return 1
    version: int = _VERSION(value)
    return version


_VERSION: Check = check_of(hints.node_of(v1.ProtocolVersion), typing.cast("Any", None))


def _unknown_word(known: frozenset[str], value: Any) -> Any:
    if not isinstance(value, str):
        raise Misfit("must be a string")
    if value in known:
        raise Misfit(f"{value!r} belongs to a known variant")
    return value


_models = _Models()
model_named = _models.get
