"""Joins the figures of several processes to one text: a text has each figure's name once. PURE."""

from __future__ import annotations

from collections.abc import Iterable

ABOUT = ("# HELP ", "# TYPE ")


def merged(texts: Iterable[str]) -> str:
    """Several texts in Prometheus' format as one; their labels tell the samples apart.

    >>> one, two = ('# TYPE a gauge\\na{host="%s"} 1\\n' % host for host in "xy")
    >>> print(merged([one, two]), end="")
    # TYPE a gauge
    a{host="x"} 1
    a{host="y"} 1
    """
    about: dict[str, dict[str, None]] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        named = ""
        for line in text.splitlines():
            if line.startswith(ABOUT):
                named = line.split(" ", 3)[2]
                about.setdefault(named, {})[line] = None
            elif line:
                samples.setdefault(named, []).append(line)
    lines = [line for named, told in about.items() for line in (*told, *samples.get(named, ()))]
    return "\n".join(lines) + "\n"
