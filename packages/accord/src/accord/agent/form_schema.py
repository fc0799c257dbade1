"""Forms: converts a class to the schema of a form, and a filled-in form to an object of that class. Pure.

A class may be a dataclass, a `msgspec.Struct`, a `TypedDict` or a `NamedTuple` of simple fields: text, numbers, yes or
no, dates, one of several (`Literal`, `Enum`), several of several (a list of those). Titles, descriptions and limits
stand in `Annotated[..., msgspec.Meta(...)]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from accord.errors import ProtocolError
from accord.installation import install_command
from accord.project.search import LONGEST_PATTERN, compiled
from accord.schema import v1
from accord.schema.base import Unknown
from accord.schema.tolerant import convert_alone
from accord.schema.v1 import ElicitationContentValue, ElicitationPropertySchema
from accord.services.form_fields import FormField, asked_for, form_excess, secrets_in

Content = dict[str, ElicitationContentValue]

META = "_meta"
"""The member that every class of the protocol has, and no form asks for."""

_WITH_FIELDS = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType, inspect.NamedTupleType)
_LISTS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)


def schema_of(form: Any) -> v1.ElicitationSchema:
    """Return the schema of the form for this class; a schema is returned as it is.

    >>> class Name(msgspec.Struct):
    ...     first: str
    >>> schema_of(Name).properties["first"]
    StringPropertySchema(title='First')
    """
    if isinstance(form, v1.ElicitationSchema):
        return form
    info = inspect.type_info(form)
    if not isinstance(info, _WITH_FIELDS):
        raise TypeError(f"a form must be a class with fields, got {form!r}")
    fields = [field for field in info.fields if field.encode_name != META]
    hints = get_type_hints(form, include_extras=True)
    return v1.ElicitationSchema(
        {field.encode_name: _property(field, hints[field.name], form.__name__) for field in fields},
        [field.encode_name for field in fields if field.required and not _is_optional(field.type)] or None,
    )


def filled_in(form: Any, content: Content) -> Any:
    """Return the filled-in form as an object of its class, or as plain values if the form is a schema.

    Raises ProtocolError for values that the form does not allow.
    """
    schema = schema_of(form)
    content = asked_for(schema, content)
    problems = [f"{name}: {problem}" for name, problem in _problems(schema, content)]
    if problems:
        raise ProtocolError(f"the client's answer does not fit the form: {'; '.join(problems)}")
    if form is schema:
        return content
    try:
        return convert_alone(cast("Any", content), form)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"the client's answer does not fit the form: {error}") from None


def check(schema: v1.ElicitationSchema) -> None:
    """Raise ValueError for a form that an agent must not show."""
    # rfd-elicitation, Restricted JSON Schema: secrets by link and never by form; types of one's own behind a `_`.
    if secrets := secrets_in(schema):
        raise ValueError(
            f"a form must not ask for secrets ({', '.join(secrets)}); send the user to a page with `elicit_url`"
        )
    if (problem := form_excess(schema)) is not None:
        raise ValueError(problem)
    for name, asked in schema.properties.items():
        if isinstance(asked, v1.StringPropertySchema) and asked.pattern is not None and compiled(asked.pattern) is None:
            raise ValueError(
                f"{name}: answers cannot be checked against the pattern {asked.pattern[:80]!r}: "
                f"write it in the syntax of RE2, in at most {LONGEST_PATTERN:,} characters, and install RE2 "
                f"({install_command('patterns')})"
            )
        if isinstance(asked, Unknown) and not asked.tag.startswith("_"):
            raise ValueError(f"{name}: the name of a custom type must begin with an underscore, got {asked.tag!r}")


# A class as a schema


def _property(field: inspect.Field, hint: Any, owner: str) -> ElicitationPropertySchema:
    described: dict[str, Any] = {"title": field.name.replace("_", " ").capitalize()}
    kind = field.type
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            extra = cast("dict[str, Any]", kind.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType]
            described |= {name: extra[name] for name in ("title", "description") if name in extra}
            kind = kind.type
        else:
            kind = _only(kind, field.name, owner)
    if field.default not in (msgspec.NODEFAULT, None):
        described["default"] = msgspec.to_builtins(field.default)
    for types, make in _PROPERTIES:
        if isinstance(kind, types):
            return _in_order(make(kind, described), hint)
    raise TypeError(f"{owner}.{field.name}: a form cannot have a field of type {type(kind).__name__}")


def _only(union: inspect.UnionType, name: str, owner: str) -> inspect.Type:
    """The type of an optional field's value."""
    others = [it for it in union.types if not isinstance(it, inspect.NoneType)]
    if len(others) != 1:
        raise TypeError(f"{owner}.{name}: a field of a form must have exactly one type")
    return others[0]


def _is_optional(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none


def _text(kind: inspect.StrType, described: dict[str, Any]) -> ElicitationPropertySchema:
    return v1.StringPropertySchema(
        min_length=kind.min_length, max_length=kind.max_length, pattern=kind.pattern, **described
    )


def _date(kind: inspect.Type, described: dict[str, Any]) -> ElicitationPropertySchema:
    return v1.StringPropertySchema(format="date" if isinstance(kind, inspect.DateType) else "date-time", **described)


def _whole_number(kind: inspect.IntType, described: dict[str, Any]) -> ElicitationPropertySchema:
    least = kind.ge if kind.ge is not None else None if kind.gt is None else kind.gt + 1
    most = kind.le if kind.le is not None else None if kind.lt is None else kind.lt - 1
    return v1.IntegerPropertySchema(minimum=least, maximum=most, **described)


def _number(kind: inspect.FloatType, described: dict[str, Any]) -> ElicitationPropertySchema:
    least = kind.ge if kind.ge is not None else kind.gt
    most = kind.le if kind.le is not None else kind.lt
    return v1.NumberPropertySchema(minimum=least, maximum=most, **described)


def _yes_or_no(_: inspect.Type, described: dict[str, Any]) -> ElicitationPropertySchema:
    return v1.BooleanPropertySchema(**described)


def _one_of(kind: inspect.Type, described: dict[str, Any]) -> ElicitationPropertySchema:
    return v1.StringPropertySchema(enum=_choices(kind), **described)


def _some_of(kind: Any, described: dict[str, Any]) -> ElicitationPropertySchema:
    items = v1.StringMultiSelectItems(_choices(kind.item_type))
    return v1.MultiSelectPropertySchema(items, min_items=kind.min_length, max_items=kind.max_length, **described)


def _in_order(asked: ElicitationPropertySchema, hint: Any) -> ElicitationPropertySchema:
    """Return choices in the order in which the author wrote them: msgspec sorts those of a `Literal`."""
    if get_origin(hint) is not Literal:
        for inner in get_args(hint):
            asked = _in_order(asked, inner)
        return asked
    written = [value for value in get_args(hint) if isinstance(value, str)]
    if isinstance(asked, v1.StringPropertySchema):
        return msgspec.structs.replace(asked, enum=written)
    if isinstance(asked, v1.MultiSelectPropertySchema):
        return msgspec.structs.replace(asked, items=v1.StringMultiSelectItems(written))
    return asked


def _choices(kind: inspect.Type) -> list[str]:
    values: Iterable[object] = ()
    if isinstance(kind, inspect.LiteralType):
        values = kind.values
    elif isinstance(kind, inspect.EnumType):
        values = [member.value for member in kind.cls]
    choices = [value for value in values if isinstance(value, str)]
    if not choices or len(choices) < len(list(values)):
        raise TypeError("the choices of a form must be strings: use a Literal or an Enum of strings")
    return choices


_PROPERTIES: tuple[tuple[Any, Callable[[Any, dict[str, Any]], ElicitationPropertySchema]], ...] = (
    (inspect.StrType, _text),
    (inspect.BoolType, _yes_or_no),
    (inspect.IntType, _whole_number),
    (inspect.FloatType, _number),
    ((inspect.DateType, inspect.DateTimeType), _date),
    ((inspect.LiteralType, inspect.EnumType), _one_of),
    (_LISTS, _some_of),
)


# Filled-in forms


def _problems(schema: v1.ElicitationSchema, content: Content) -> Iterable[tuple[str, str]]:
    """rfd-elicitation: the agent checks what it gets against the schema that it sent."""
    for name in schema.required or ():
        if name not in content:
            yield name, "missing"
    for name, value in content.items():
        asked = schema.properties.get(name)
        if asked is None or isinstance(asked, Unknown):
            continue
        if (problem := FormField(name, asked, required=False).problem(value)) is not None:
            yield name, problem
