"""The common words and signs for a session: usage, tool calls, plans, changes, files. PURE."""

from __future__ import annotations

import os
import re

from accord import updates, v1
from accord.printable import label
from accord.session import ToolCallState
from accord_tools.presentation.styled_text import Span

TOOL_SIGNS = {
    "pending": ("○", "dim"),
    "in_progress": ("●", "accent"),
    "paused": ("‖", "warning"),
    "completed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "cancelled": ("⊘", "dim"),
}
"""The sign of each status of a tool call, and its style."""

STEP_SIGNS = {"completed": ("✓", "good"), "in_progress": ("▸", "accent"), "pending": ("○", "dim")}
"""The sign of each status of a step of a plan, and its style."""

MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"\n]+)\"|([^\s\"@]+))")
"""A mention, in the syntax of `session.prompt(mentions=True)`."""

SEVERITIES = {"error": "bad", "warning": "warning"}
"""The styles of notices; others are of the style `accent`."""


def usage_words(turn: v1.Usage | None, context: updates.UsageUpdate | None) -> list[str]:
    """Describe the agent's report of a turn and of the session's context; empty if there is none.

    >>> usage_words(v1.Usage(1200, 1000, 200), updates.UsageUpdate(50, 200))
    ['1,200 tokens (1,000 in, 200 out)', 'context 25% full (50 of 200)']
    """
    words: list[str] = []
    if turn is not None:
        words.append(f"{turn.total_tokens:,} tokens ({turn.input_tokens:,} in, {turn.output_tokens:,} out)")
    if context is not None and context.size:
        full = round(100 * context.used / context.size)
        words.append(f"context {full}% full ({context.used:,} of {context.size:,})")
    if context is not None and context.cost:
        words.append(f"{round(context.cost.amount, 4):,.6g} {label(context.cost.currency, 8)}")
    return words


def tool_title(call: ToolCallState, most: int = 300) -> str:
    """Return the title of a tool call, or a substitute."""
    return label(call.title, most) or label(call.name or call.kind, most)


def prompt_title(text: str) -> str:
    """Return the title of a session without one: the first line of its first prompt, with the names of files.

    >>> prompt_title("\\nMend @src/lanes.py and @\\"my notes.txt\\", please\\nIt loses ...")
    'Mend lanes.py and my notes.txt, please'
    """
    line = text.strip().partition("\n")[0]
    return label(MENTION.sub(lambda found: (found[1] or found[2]).rstrip("/").rpartition("/")[2], line), 60)


def change_numbers(added: int, removed: int) -> list[Span]:
    """Return how many lines a change adds and removes, after two blanks.

    >>> change_numbers(2, 1), change_numbers(0, 1)
    ([('  +2', 'good'), (' -1', 'bad')], [('  -1', 'bad')])
    """
    gap = " " if added else "  "
    return [(f"  +{added:,}", "good")] * bool(added) + [(f"{gap}-{removed:,}", "bad")] * bool(removed)


def shortened_path(path: str, folder: str) -> str:
    """Return a path relative to the session's folder."""
    return path[len(folder) + 1 :] if folder and path.startswith(folder + os.sep) else path
