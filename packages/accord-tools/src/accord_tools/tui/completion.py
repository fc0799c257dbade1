"""What can be completed in the editor: commands after `/`, files after `@`. PURE.

The list is made in the same step as the key that asks for it, so a quick `enter` never takes what a list of an earlier
moment has first. An exact name comes before all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MOST = 8
"""Entries of the list."""
SEARCHED = 20_000
"""Paths that are searched for letters with others between them."""

_COMMAND = re.compile(r"/([^\s/]*)$")
_MENTION = re.compile(r"(?<![\w@])@(\"[^\"\n]*|[^\s\"@]*)$")


class Completion(NamedTuple):
    """One entry: what is shown, what it says, and the text that replaces what was typed."""

    label: str
    about: str
    text: str


class Completions(NamedTuple):
    """The entries for what stands before the cursor, and how much of it they replace."""

    entries: Sequence[Completion]
    replaced: int
    """How many characters before the cursor an entry replaces."""
    is_exact: bool = False
    """Whether what was typed is the first entry already."""


NOTHING = Completions((), 0)
_DIFF = Completion("diff", "the changes of the working tree", "@diff ")


def completions(before: str, commands: Sequence[tuple[str, str]], paths: FileList) -> Completions:
    """The entries for the text before the cursor. `commands` are names and what they do."""
    if "\n" not in before and (found := _COMMAND.fullmatch(before)) is not None:
        return _of_commands(found[1], commands)
    if (found := _MENTION.search(before)) is not None:
        typed = found[1].removeprefix('"')
        entries = [_DIFF] if "diff".startswith(typed) and found[0][1:2] != '"' else []
        entries += [_of_path(path) for path in paths.matching(typed, MOST - len(entries))]
        # An entry that was typed as a whole is sent at once; one of a folder goes on.
        return Completions(entries, len(found[0]), bool(entries) and entries[0].text.rstrip() == found[0])
    return NOTHING


def _of_commands(typed: str, commands: Sequence[tuple[str, str]]) -> Completions:
    wanted = typed.casefold()
    ranked = sorted(
        ((rank, name, about) for name, about in commands if (rank := _rank(name.casefold(), wanted)) is not None),
        key=lambda it: it[0],
    )
    entries = [Completion(f"/{name}", about, f"/{name} ") for _, name, about in ranked[:MOST]]
    return Completions(entries, len(typed) + 1, bool(ranked) and ranked[0][0] == 0)


def _rank(name: str, wanted: str) -> int | None:
    """How well a name fits: exactly, by its beginning, or somewhere; None if it does not."""
    if name == wanted:
        return 0
    if name.startswith(wanted):
        return 1
    return 2 if wanted in name else None


def _of_path(path: str) -> Completion:
    written = f'@"{path}"' if re.search(r"\s", path) else f"@{path}"
    return Completion(path, "", written if path.endswith("/") else f"{written} ")


class FileList:
    """The files of a folder, for mentions.

    >>> FileList(["src/main.py", "docs/maintain.md", "setup.py"]).matching("main", 2)
    ['src/main.py', 'docs/maintain.md']
    """

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = list(paths)
        self._folded = [path.casefold() for path in self._paths]

    def __len__(self) -> int:
        return len(self._paths)

    def matching(self, typed: str, most: int) -> list[str]:
        """The paths that fit best what was typed."""
        wanted = typed.casefold()
        found = [place for place, path in enumerate(self._folded) if wanted in path]
        if len(found) < most and wanted:
            letters = re.compile(".*?".join(map(re.escape, wanted)))
            known = set(found)
            scattered = [
                place
                for place, path in enumerate(self._folded[:SEARCHED])
                if place not in known and letters.search(path) is not None
            ]
            found += sorted(scattered, key=lambda place: len(self._folded[place]))
        else:
            found = found[: 50 * most] if not wanted else found
        return [self._paths[place] for place in sorted(found, key=lambda it: self._worth(it, wanted))[:most]]

    def _worth(self, place: int, wanted: str) -> tuple[int, int]:
        """A place in the order: names that begin so, names that have it, paths that have it, the rest."""
        path = self._folded[place]
        name = path.rstrip("/").rpartition("/")[2]
        kind = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in path else 3
        return kind, len(path)
