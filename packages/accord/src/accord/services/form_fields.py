"""Forms from schemas: their fields, the validation of values, and the parsing of typed text. Pure.

The schemas are a small part of JSON Schema, with the same rules for validity. An optional field of an unknown type is
left out; a form with a required one is refused. So are forms that are too large, and those that ask for secrets.

A pattern comes from an agent, so RE2 matches it (`project.search`). Without RE2, and for patterns that it does not
support (lookahead, backreferences), a client does not check the pattern: the agent must validate its input anyway. An
agent does not send a form whose answers it could not check.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import msgspec

from accord.errors import RequestError
from accord.schema import v1
from accord.schema.base import Unknown

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
"""The supported fields of a form, in the schema."""


class FormField(msgspec.Struct, frozen=True):
    """One field of a form."""

    name: str
    schema: Known
    required: bool

    @property
    def title(self) -> str:
        """The label to display."""
        return self.schema.title or self.name

    @property
    def choices(self) -> Sequence[v1.EnumOption]:
        """The choices; empty for a field with free input."""
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
        """The initial value, if the schema has one that is valid."""
        default = self.schema.default
        return default if default is not None and self.problem(default) is None else None

    def problem(self, value: Any) -> str | None:
        """Describe what is wrong with a value, in a few words; None if it is valid."""
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
        """Number of choices in the schema; choices that are selected by default count twice."""
        enum, default = getattr(self.schema, "enum", None), self.schema.default
        return len(self.choices) + len(enum or ()) + (len(default) if isinstance(default, list) else 0)

    @property
    def characters(self) -> int:
        """Characters of all texts in the field's schema."""
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
            return "must be text"
        if schema.enum is not None and value not in schema.enum:
            return "must be one of the choices"
        if schema.one_of is not None and value not in {choice.const for choice in schema.one_of}:
            return "must be one of the choices"
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
            return "must contain only the given choices"
        if schema.min_items is not None and len(chosen) < schema.min_items:
            return f"must have at least {schema.min_items} of the choices"
        if schema.max_items is not None and len(chosen) > schema.max_items:
            return f"must have at most {schema.max_items} of the choices"
        return None

    def parse(self, text: str) -> Value:
        """Return the value of a typed text; raises ValueError with the problem."""
        value = self._value_of(text.strip())
        if (problem := self.problem(value)) is not None:
            raise ValueError(problem)
        return value

    def _value_of(self, text: str) -> Value:
        schema = self.schema
        if isinstance(schema, v1.MultiSelectPropertySchema):
            choose = _chooser(self.choices)
            return list(dict.fromkeys(choose(part.strip()) for part in text.split(",") if part.strip()))
        if isinstance(schema, v1.StringPropertySchema):
            return _chooser(self.choices)(text) if self.choices else text
        if isinstance(schema, v1.BooleanPropertySchema):
            if (choice := _YES_AND_NO.get(text.lower())) is None:
                raise ValueError("must be yes or no")
            return choice
        try:
            return int(text) if isinstance(schema, v1.IntegerPropertySchema) else _number(text)
        except ValueError:
            whole = "a whole number" if isinstance(schema, v1.IntegerPropertySchema) else "a number"
            raise ValueError(f"must be {whole}") from None


def _chooser(choices: Sequence[v1.EnumOption]) -> Callable[[str], str]:
    """A function that finds a choice by its value, its title, or its number in the list, or raises ValueError."""
    values = {choice.const for choice in choices}
    titles = {choice.title.lower(): choice.const for choice in reversed(choices)}

    def choose(text: str) -> str:
        if text in values:
            return text
        if (const := titles.get(text.lower())) is not None:
            return const
        if text.isdecimal() and len(text) <= _MOST_DIGITS and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1].const
        raise ValueError("must be one of the choices")

    return choose


def _shown(text: str) -> str:
    """The agent's text for use in a message: printable and short."""
    shown = "".join(it if it.isprintable() else "\N{REPLACEMENT CHARACTER}" for it in text[:_LONGEST_SHOWN])
    return shown if len(text) <= _LONGEST_SHOWN else f"{shown}…"


def fields_of(schema: v1.ElicitationSchema) -> list[FormField]:
    """The fields of known types, in order; raises RequestError if a required field has an unknown type."""
    required = set(schema.required or ())
    fields: list[FormField] = []
    for name, declared in schema.properties.items():
        if not is_drawn(declared):
            if name in required:
                raise RequestError.invalid_params("a required field has an unsupported type", field=name)
            continue
        fields.append(FormField(name, declared, name in required))
    return fields


def is_drawn(asked: v1.ElicitationPropertySchema) -> TypeGuard[Known]:
    """Whether the field's type is known, so that it can be displayed."""
    return not isinstance(asked, Unknown) and not isinstance(getattr(asked, "items", None), Unknown)


def asked_for(schema: v1.ElicitationSchema, content: Mapping[str, Value]) -> Content:
    """Return the part of `content` that the form asks for: the answer contains nothing else."""
    return {name: value for name, value in content.items() if name in schema.properties}


def problems(schema: v1.ElicitationSchema, content: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems of the content, by field; empty if it is valid."""
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
    """The initial content of the form."""
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


MOST_FIELDS = 200
"""Fields that a form may have."""
MOST_CHOICES = 5_000
"""Choices that all fields of a form may have together."""
MOST_CHARACTERS = 200_000
"""Characters of all texts of a form together: names, titles, descriptions, choices, patterns, defaults."""


def form_excess(schema: v1.ElicitationSchema) -> str | None:
    """Return why a form is too large, as an error text; None if it is within the limits.

    >>> form_excess(v1.ElicitationSchema({str(number): v1.BooleanPropertySchema() for number in range(300)}))
    'the form has 300 fields, at most 200 are allowed: ask in several forms'
    """
    if (count := max(len(schema.properties), len(schema.required or ()))) > MOST_FIELDS:
        return _too_many(count, "fields", MOST_FIELDS)
    fields = [FormField(name, asked, required=False) for name, asked in schema.properties.items() if is_drawn(asked)]
    if (choices := sum(field.choice_count for field in fields)) > MOST_CHOICES:
        return _too_many(choices, "choices", MOST_CHOICES)
    own = (schema.title, schema.description, *(schema.required or ()))
    if (characters := sum(len(text) for text in own if text) + sum(it.characters for it in fields)) > MOST_CHARACTERS:
        return _too_many(characters, "characters", MOST_CHARACTERS)
    return None


def _too_many(given: int, what: str, allowed: int) -> str:
    return f"the form has {given:,} {what}, at most {allowed:,} are allowed: ask in several forms"


def secrets_in(schema: v1.ElicitationSchema) -> list[str]:
    """Return the fields whose names suggest that the user would type a secret.

    >>> secrets_in(v1.ElicitationSchema({"apiKey": v1.StringPropertySchema(), "maxTokens": v1.StringPropertySchema()}))
    ['apiKey']
    """
    return [
        name
        for name, asked in schema.properties.items()
        if isinstance(asked, v1.StringPropertySchema)
        and asked.enum is None
        and asked.one_of is None
        and any(_SECRET.search(_WORD_BREAK.sub(" ", words).lower()) for words in (name, asked.title or ""))
    ]


_SECRET = re.compile(
    r"^(secret|token|apikey|pin|pin code|otp)$"
    r"|\b(pass ?(word|phrase|code)s?|passwd|credentials?|client secret|(api|access|private|secret) ?keys?"
    r"|(access|api|auth|bearer|refresh) ?tokens?)\b"
)
_WORD_BREAK = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\W]+")


MOST_STEPS = 1_000_000
"""Steps that a match may take: characters of the text times instructions of the pattern. These take 15 ms."""

_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})++")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


def has_format(text: str, name: str) -> bool:
    """Whether a text is an `email`, `uri`, `date` or `date-time`.

    >>> has_format("2024-02-30", "date"), has_format("2024-02-29T12:00:00Z", "date-time")
    (False, True)
    """
    return _FORMATS[name](text) if name in _FORMATS else True


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    if found is None or not _is_date(found[1]):
        return False
    hour, minute, second = (int(found[group]) for group in (2, 3, 4))
    zone = found[6]
    zone_is_right = zone in "Zz" or (int(zone[1:3]) < 24 and int(zone[4:6]) < 60)
    return hour < 24 and minute < 60 and second <= 60 and zone_is_right  # 60 is a leap second


def _is_email(text: str) -> bool:
    return len(text) <= 254 and _EMAIL.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    return _URI.fullmatch(text) is not None


_FORMATS = {"email": _is_email, "uri": _is_uri, "date": _is_date, "date-time": _is_date_time}


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern occurs in a text; None if that cannot be checked in linear time.

    >>> matches("^(a+)+$", "a" * 60 + "!")
    False
    """
    from accord.project.search import compiled  # few forms have patterns

    expression = compiled(pattern)
    if expression is None or expression.programsize * len(text) > MOST_STEPS:
        return None
    try:
        return expression.search(text) is not None
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        return None
