"""What is said of a session in the same words everywhere: usage, numbers of a change, files by their folder. PURE."""

from __future__ import annotations

import os

from accord import v1
from accord.printable import label
from accord_tools.presentation.styled_text import Span

SEVERITIES = {"error": "bad", "warning": "warning"}
"""The styles of notices; others are of the style `accent`."""


def usage_words(turn: v1.Usage | None, context: v1.UsageUpdate | None) -> list[str]:
    """What the agent has reported of a turn and of the session's context; empty if it has reported nothing.

    >>> usage_words(v1.Usage(1200, 1000, 200), v1.UsageUpdate(50, 200))
    ['1,200 tokens (1,000 in, 200 out)', 'context 25% full (50 of 200)']
    """
    words: list[str] = []
    if turn is not None:
        words.append(f"{turn.total_tokens:,} tokens ({turn.input_tokens:,} in, {turn.output_tokens:,} out)")
    if context is not None and context.size:
        full = round(100 * context.used / context.size)
        words.append(f"context {full}% full ({context.used:,} of {context.size:,})")
    if context is not None and context.cost is not None:
        words.append(f"{context.cost.amount:.4g} {label(context.cost.currency, 8)}")
    return words


def change_numbers(added: int, removed: int) -> list[Span]:
    """How many lines a change adds and removes, each after two blanks."""
    return [(f"  +{added:,}", "good")] * bool(added) + [(f"  -{removed:,}", "bad")] * bool(removed)


def shortened_path(path: str, folder: str) -> str:
    """A path as it is named from the session's folder."""
    return path[len(folder) + 1 :] if folder and path.startswith(folder + os.sep) else path
