"""Splits a shell line into its simple commands, for rules. Pure.

`npm test && rm -rf /` begins like `npm test`. So a line is split first, and a rule that allows must allow every simple
command. A line with syntax that cannot be judged by reading (substitutions, redirections, groups, line feeds) has no
simple commands that could be allowed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "fish"})
"""Programs that run the line after their option `-c`."""

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
    """Every part of a command that could be a command, for rules that reject; also what it hands to another shell.

    >>> traces(["sh", "-c", "rm a.txt"])
    ['sh -c rm a.txt', 'rm a.txt']
    """
    found: list[str] = []
    waiting: list[str | Sequence[str]] = [command]
    while waiting:
        part = waiting.pop()
        line = part if isinstance(part, str) else " ".join(part)
        found += [line, *(simple_commands(part) or [])]
        found += [part.strip() for part in re.split(r"[;&|`$(){}\n\r]+", line)]
        waiting += _lines_for_shells(part)
    return list(dict.fromkeys(" ".join(part.split()) for part in found if part.strip()))


def _lines_for_shells(command: str | Sequence[str]) -> list[str]:
    """The lines that a command hands to shells: LINE of `sh -c LINE`. Each is shorter than the command."""
    try:
        words = _shell_words(command) if isinstance(command, str) else list(command)
    except ValueError:  # a quote is not closed: a shell would not run it
        return []
    found: list[str] = []
    for at, word in enumerate(words):
        if PurePosixPath(word).name not in SHELLS:
            continue
        after = at + 1
        while after + 1 < len(words) and words[after].startswith("-"):
            if not words[after].startswith("--") and "c" in words[after]:
                found.append(words[after + 1])
                break
            after += 1
    return found


def _shell_words(line: str) -> list[str]:
    split = shlex.shlex(line, posix=True, punctuation_chars=True)
    split.whitespace_split, split.commenters = True, ""
    return list(split)
