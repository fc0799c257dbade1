"""Which known word an unknown one most likely means. PURE."""

from __future__ import annotations

from collections.abc import Iterable

FEW = 12
"""So many known words are listed when none is close."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the known word that is meant, or all of them if they are few.

    >>> nearest("comand", ["command", "url"]), nearest("x", ["command", "url"])
    ('; did you mean command?', '; known are command, url')
    """
    words = list(known)
    return meant(word, words) or (f"; known are {', '.join(words)}" if 0 < len(words) <= FEW else "")


def meant(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the known word that is meant, if one is close."""
    import difflib  # errors are rare

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
