"""Arguments that a command does not know: what the user most likely meant by them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from accord.mistakes import meant
from accord_tools.cli.parser import actions_of


def explained(
    parser: argparse.ArgumentParser, given: Sequence[str], unknown: Sequence[str], options: argparse.Namespace
) -> str:
    """The error for these unknown arguments of a command. `given` are all words before `--`."""
    words = [word for word in unknown if not word.startswith("-")]
    if words and getattr(options, "takes_agent", False) and not unknown[0].startswith("-"):
        ours = list(given)
        for word in reversed(unknown):
            place = len(ours) - 1 - ours[::-1].index(word)
            del ours[place]
        complete = shlex.join(["accord", *ours, "--", *unknown])
        return f"unexpected argument {unknown[0]!r}: put -- before the agent's command; did you mean {complete}?"
    if words and not unknown[0].startswith("-"):
        return f"unexpected argument {words[0]!r}"
    option = unknown[0].partition("=")[0]
    if option in ("--debug", "--version"):
        return f"{option} goes before the command: accord {option} {options.command}"
    known = [name for action in actions_of(parser) for name in action.option_strings]
    close = meant(option, [name for name in known if name.startswith("--")])
    how = close or f"; {parser.prog} --help lists all options"
    return f"unknown option {option}{how}"
