"""Versions of agents. Published ones are not always semantic versions, so they are compared as numbers. PURE.

Real versions are `1.50.1`, `2026.10.01` and `3000.5.20`. An unknown form must not hide an agent: what is not a number
is compared after the numbers, as text.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d+")
_UNSAFE = re.compile(r"[^0-9A-Za-z.+_-]")


def order_of(version: str) -> tuple[tuple[int, ...], bool, tuple[tuple[int, str], ...]]:
    """The key by which versions are sorted; a preview comes before its release.

    >>> sorted(["0.10.0", "0.9.1", "0.10.0-preview.2"], key=order_of)
    ['0.9.1', '0.10.0-preview.2', '0.10.0']
    """
    release, dash, preview = version.partition("-")
    numbers = [int(it) for it in _NUMBER.findall(release)[:8] if len(it) < 20]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    parts = tuple((int(it), "") if it.isdecimal() and len(it) < 20 else (-1, it) for it in preview.split("."))
    return tuple(numbers), not dash, parts


def is_newer(version: str, than: str) -> bool:
    """Whether one version is newer than another."""
    return order_of(version) > order_of(than)


def folder_part(version: str) -> str:
    """A version as a part of a folder's name, whatever it holds.

    >>> folder_part("../../1.0")
    '_.._.._1.0'
    """
    safe = _UNSAFE.sub("_", version)[:80]
    return safe if safe[:1].isalnum() else f"_{safe}"
