"""Text as a code block of Markdown. PURE."""

from __future__ import annotations

import re


def fenced(text: str) -> str:
    """This text as a code block, with a fence that is longer than any in the text.

    >>> fenced("a\\n```\\nb")
    '````\\na\\n```\\nb\\n````'
    """
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return f"{fence}\n{text.removesuffix(chr(10))}\n{fence}"
