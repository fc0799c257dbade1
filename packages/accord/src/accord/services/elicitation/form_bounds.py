"""Checks for forms that are refused: those that are too large, and those that ask for secrets. Pure."""

from __future__ import annotations

import re

from accord.schema import v1
from accord.services.elicitation.form import FormField, is_drawn

MOST_FIELDS = 200
"""Fields that a form may have."""
MOST_CHOICES = 5_000
"""Choices that all fields of a form may have together."""
MOST_CHARACTERS = 200_000
"""Characters of all texts of a form together: names, titles, descriptions, choices, patterns, defaults."""


def excess(schema: v1.ElicitationSchema) -> str | None:
    """Why a form is too large, as an error text; None if it is within the bounds.

    >>> excess(v1.ElicitationSchema({str(number): v1.BooleanPropertySchema() for number in range(300)}))
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
    """The fields whose names suggest that the user would type a secret.

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
