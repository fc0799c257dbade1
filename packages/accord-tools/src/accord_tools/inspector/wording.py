"""A message as the page's rows say it: `tool_call` and `edit README.md → completed`, each on one line. PURE.

The words are those of `accord.trace.meaning`; here they become as short as a row.
"""

from __future__ import annotations

from typing import Any

from accord.trace.meaning import Members, body_of, error_meaning, meaning, result_meaning, update_meaning

LONGEST = 240
"""Characters of a detail. Rows are one line."""


def short(value: Any) -> str:
    """A value as a short text on one line."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
    return " ".join(text[: 4 * LONGEST].split())[:LONGEST]


def raw_text_of(block: Any) -> str:
    """The text of one content block, white space included."""
    text = body_of(block).get("text")
    return text if isinstance(text, str) else ""


def describe(method: str, update: str, message: Members, *, is_answer: bool) -> tuple[str, str]:
    """What a message is, and what it says.

    >>> describe("session/cancel", "", {"params": {"sessionId": "s"}}, is_answer=False)
    ('session/cancel', '')
    """
    if is_answer and message.get("error") is not None:
        return f"{method or 'answer'} ✗", short(error_meaning(body_of(message["error"])))
    if is_answer:
        return f"{method or 'answer'} ✓", short(result_meaning(method, body_of(message.get("result"))))
    params = body_of(message.get("params"))
    if update:
        return update, short(update_meaning(update, body_of(params.get("update"))))
    return method, short(meaning(method, "", params))
