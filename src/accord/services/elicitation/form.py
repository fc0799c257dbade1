"""A form from its schema: its fields, what may be filled in, and what a typed text means. Pure.

The schemas are a small part of JSON Schema, and what is right here is what is right there. What cannot be drawn (a type
that nobody here knows) is left out where it may be, and otherwise the form is refused: nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import msgspec

from accord.errors import RequestError
from accord.schema import v1
from accord.schema.base import Unknown
from accord.services.elicitation.formats import has_format, matches

Value: TypeAlias = "str | int | float | bool | list[str]"
Content: TypeAlias = dict[str, Value]

_LONGEST_SHOWN = 80
_MOST_DIGITS = 9

Known: TypeAlias = (
    v1.StringPropertySchema
    | v1.NumberPropertySchema
    | v1.IntegerPropertySchema
    | v1.BooleanPropertySchema
    | v1.MultiSelectPropertySchema
)


class FormField(msgspec.Struct, frozen=True):
    """One thing to fill in."""

    name: str
    schema: Known
    required: bool

    @property
    def title(self) -> str:
        return self.schema.title or self.name

    @property
    def choices(self) -> Sequence[v1.EnumOption]:
        """What can be chosen; empty where anything may be typed."""
        schema = self.schema
        if isinstance(schema, v1.MultiSelectPropertySchema):
            items = schema.items
            if isinstance(items, v1.TitledMultiSelectItems):
                return items.any_of
            return _untitled(items.enum) if isinstance(items, v1.StringMultiSelectItems) else ()
        if isinstance(schema, v1.StringPropertySchema):
            return schema.one_of if schema.one_of is not None else _untitled(schema.enum or ())
        return ()

    @property
    def default(self) -> Value | None:
        """What is filled in to begin with, if that is right."""
        default = self.schema.default
        return default if default is not None and self.problem(default) is None else None

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, in a few words; None if nothing is."""
        schema = self.schema
        if isinstance(schema, v1.StringPropertySchema):
            return self._text_problem(schema, value)
        if isinstance(schema, v1.MultiSelectPropertySchema):
            return self._selection_problem(schema, value)
        if isinstance(schema, v1.BooleanPropertySchema):
            return None if isinstance(value, bool) else "must be yes or no"
        return _number_problem(schema, value)

    @property
    def choice_count(self) -> int:
        """How many choices the agent gave for it, those that are chosen to begin with counted twice."""
        enum, default = getattr(self.schema, "enum", None), self.schema.default
        return len(self.choices) + len(enum or ()) + (len(default) if isinstance(default, list) else 0)

    @property
    def characters(self) -> int:
        """Characters of all texts that the agent gave for it."""
        schema = self.schema
        texts = [self.name, schema.title, schema.description]
        texts += [text for choice in self.choices for text in (choice.const, choice.title, choice.description)]
        if isinstance(schema, v1.StringPropertySchema):
            texts += [schema.pattern, schema.default, *(schema.enum or ())]
        elif isinstance(schema, v1.MultiSelectPropertySchema):
            texts += schema.default or ()
        return sum(len(text) for text in texts if text)

    def _text_problem(self, schema: v1.StringPropertySchema, value: Any) -> str | None:
        if not isinstance(value, str):
            return "must be a text"
        if schema.enum is not None and value not in schema.enum:
            return "is none of the choices"
        if schema.one_of is not None and value not in {choice.const for choice in schema.one_of}:
            return "is none of the choices"
        if schema.min_length is not None and len(value) < schema.min_length:
            return f"must have at least {_counted(schema.min_length, 'character')}"
        if schema.max_length is not None and len(value) > schema.max_length:
            return f"must have at most {_counted(schema.max_length, 'character')}"
        if schema.format is not None and not has_format(value, schema.format):
            return _FORMAT_PROBLEMS.get(schema.format, f"must be a {schema.format}")
        if schema.pattern is not None and matches(schema.pattern, value) is False:
            return f"must match {_shown(schema.pattern)}"
        return None

    def _selection_problem(self, schema: v1.MultiSelectPropertySchema, value: Any) -> str | None:
        if not isinstance(value, list):
            return "must be a list"
        chosen = cast("list[Any]", value)
        offered = {choice.const for choice in self.choices}
        if not all(isinstance(it, str) and it in offered for it in chosen):
            return "has something that is none of the choices"
        if schema.min_items is not None and len(chosen) < schema.min_items:
            return f"must have at least {schema.min_items} of the choices"
        if schema.max_items is not None and len(chosen) > schema.max_items:
            return f"must have at most {schema.max_items} of the choices"
        return None

    def parse(self, text: str) -> Value:
        """What a typed text means; raises ValueError with the problem."""
        value = self._meant(text.strip())
        if (problem := self.problem(value)) is not None:
            raise ValueError(problem)
        return value

    def _meant(self, text: str) -> Value:
        schema = self.schema
        if isinstance(schema, v1.MultiSelectPropertySchema):
            choose = _chooser(self.choices)
            return list(dict.fromkeys(choose(part.strip()) for part in text.split(",") if part.strip()))
        if isinstance(schema, v1.StringPropertySchema):
            return _chooser(self.choices)(text) if self.choices else text
        if isinstance(schema, v1.BooleanPropertySchema):
            if (meant := _YES_AND_NO.get(text.lower())) is None:
                raise ValueError("must be yes or no")
            return meant
        try:
            return int(text) if isinstance(schema, v1.IntegerPropertySchema) else _number(text)
        except ValueError:
            whole = "a whole number" if isinstance(schema, v1.IntegerPropertySchema) else "a number"
            raise ValueError(f"must be {whole}") from None


def _chooser(choices: Sequence[v1.EnumOption]) -> Callable[[str], str]:
    """Finds a choice by its value, its title, or its number in the list; ValueError for what is none of them."""
    values = {choice.const for choice in choices}
    titles = {choice.title.lower(): choice.const for choice in reversed(choices)}

    def choose(text: str) -> str:
        if text in values:
            return text
        if (const := titles.get(text.lower())) is not None:
            return const
        if text.isdecimal() and len(text) <= _MOST_DIGITS and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1].const
        raise ValueError("is none of the choices")

    return choose


def _shown(text: str) -> str:
    """A text of the agent's that stands in a problem: printable, and not long."""
    shown = "".join(it if it.isprintable() else "\N{REPLACEMENT CHARACTER}" for it in text[:_LONGEST_SHOWN])
    return shown if len(text) <= _LONGEST_SHOWN else f"{shown}…"


def fields_of(schema: v1.ElicitationSchema) -> list[FormField]:
    """The fields that can be drawn, in their order; RequestError where one that cannot be has to be filled in."""
    required = set(schema.required or ())
    fields: list[FormField] = []
    for name, declared in schema.properties.items():
        if not is_drawn(declared):
            if name in required:
                raise RequestError.invalid_params("a required field is of a type that is not known here", field=name)
            continue
        fields.append(FormField(name, declared, name in required))
    return fields


def is_drawn(asked: v1.ElicitationPropertySchema) -> TypeGuard[Known]:
    """Whether a field of this type can be shown."""
    return not isinstance(asked, Unknown) and not isinstance(getattr(asked, "items", None), Unknown)


def asked_for(schema: v1.ElicitationSchema, content: Mapping[str, Value]) -> Content:
    """What a form asks for, of what was filled in: a form's answer holds nothing else."""
    return {name: value for name, value in content.items() if name in schema.properties}


def problems(schema: v1.ElicitationSchema, content: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with what was filled in, by field; empty if it is right."""
    found: dict[str, str] = {}
    for field in fields_of(schema):
        if field.name not in content:
            if field.required:
                found[field.name] = "is required"
        elif (problem := field.problem(content[field.name])) is not None:
            found[field.name] = problem
    for name in schema.required or ():
        if name not in content:
            found.setdefault(name, "is required")
    return found


def defaults(schema: v1.ElicitationSchema) -> Content:
    """What the form is filled in with to begin with."""
    return {field.name: field.default for field in fields_of(schema) if field.default is not None}


def _untitled(values: Sequence[str]) -> list[v1.EnumOption]:
    return [v1.EnumOption(value, value) for value in values]


def _number_problem(schema: v1.NumberPropertySchema | v1.IntegerPropertySchema, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a number"
    if isinstance(schema, v1.IntegerPropertySchema) and value != int(value):
        return "must be a whole number"
    if schema.minimum is not None and value < schema.minimum:
        return f"must be at least {schema.minimum:g}"
    if schema.maximum is not None and value > schema.maximum:
        return f"must be at most {schema.maximum:g}"
    return None


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_YES_AND_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_FORMAT_PROBLEMS = {
    "email": "must be an e-mail address",
    "uri": "must be a URI, such as https://example.com",
    "date": "must be a date, such as 2026-11-21",
    "date-time": "must be a date and time, such as 2026-11-21T12:00:00Z",
}
