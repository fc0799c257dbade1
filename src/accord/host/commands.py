"""A command as rules see it: the simple commands that a line consists of. Pure.

`npm test && rm -rf /` begins like `npm test`. So a line is taken apart first, and a rule that allows has to allow every
part. A line that holds what cannot be judged by reading it (substitutions, redirections, groups, line feeds) has no
parts that could be allowed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_OPAQUE = re.compile(r"[`$<>(){}\n\r\\]")
_SEPARATORS = {"&&", "||", ";", "|", "&", "|&", ";;"}


def simple_commands(command: str | Sequence[str]) -> list[str] | None:
    """Each simple command with single blanks between its words; None for a line that cannot be judged.

    >>> simple_commands("npm  test && git 'push'")
    ['npm test', 'git push']
    >>> simple_commands("echo $(rm -rf /)") is None
    True
    """
    if not isinstance(command, str):
        return [" ".join(command)]
    if _OPAQUE.search(command):
        return None
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:  # a quote that is not closed
        return None
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            parts.append([])
        else:
            parts[-1].append(word)
    return [" ".join(part) for part in parts if part] or None


def traces(command: str | Sequence[str]) -> list[str]:
    """For rules that reject: whatever could be a command in it, judged or not."""
    line = command if isinstance(command, str) else " ".join(command)
    found = [line, *(simple_commands(command) or [])]
    found += [part.strip() for part in re.split(r"[;&|`$(){}\n\r]+", line)]
    return [" ".join(part.split()) for part in found if part.strip()]
