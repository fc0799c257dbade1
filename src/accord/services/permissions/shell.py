"""Splits a shell line into its simple commands, for rules. Pure.

`npm test && rm -rf /` begins like `npm test`. So a line is split first, and a rule that allows must allow every simple
command. A line with syntax that cannot be judged by reading (substitutions, redirections, groups, line feeds) has no
simple commands that could be allowed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPAQUE = re.compile(r"[`$<>(){}\n\r\\]")
_SEPARATORS = {"&&", "||", ";", "|", "&", "|&", ";;"}

# A shell's tokens in a line without opaque characters. The quantifiers are possessive, so that matching the agent's
# line takes linear time.
_TOKEN = re.compile(r"""(?P<word>(?:[^ \t'";&|]++|'[^']*+'|"[^"]*+")++)|[;&|]++|[ \t]++""")
_QUOTED = re.compile(r"""'([^']*+)'|"([^"]*+)\"""")


def simple_commands(command: str | Sequence[str]) -> list[str] | None:
    """The simple commands, with single spaces between words; None for a line that cannot be judged.

    >>> simple_commands("npm  test && git 'push'")
    ['npm test', 'git push']
    >>> simple_commands("echo $(rm -rf /)") is None
    True
    """
    if not isinstance(command, str):
        return [" ".join(command)]
    if _OPAQUE.search(command):
        return None
    words = _words(command)
    if words is None:
        return None
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            parts.append([])
        else:
            parts[-1].append(word)
    return [" ".join(part) for part in parts if part] or None


def _words(line: str) -> list[str] | None:
    """The words of a line without quotes, and its separators; None if a quote is not closed."""
    words: list[str] = []
    end = 0
    while end < len(line):
        token = _TOKEN.match(line, end)
        if token is None:
            return None
        end = token.end()
        text = token.group()
        if token["word"] is not None:
            words.append(_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", text))
        elif text[0] not in " \t":
            words.append(text)
    return words


def traces(command: str | Sequence[str]) -> list[str]:
    """Every part of a line that could be a command, for rules that reject."""
    line = command if isinstance(command, str) else " ".join(command)
    found = [line, *(simple_commands(command) or [])]
    found += [part.strip() for part in re.split(r"[;&|`$(){}\n\r]+", line)]
    return list(dict.fromkeys(" ".join(part.split()) for part in found if part.strip()))
