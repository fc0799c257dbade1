"""The last lines of what a program wrote to its standard error, bounded, and as a note of an exception. PURE."""

from __future__ import annotations

MOST_LINES = 40
"""Lines of standard error that an exception carries: a traceback with an exception group has about that many."""

MOST_CHARACTERS = 8 * 1024
"""Characters of standard error that an exception carries."""


def last_lines(text: str, most: int = MOST_LINES, characters: int | None = None) -> list[str]:
    """The last lines of this text, without newlines and without blank lines at the end.

    `characters` bounds them all together; the first line may be cut at its beginning.

    >>> last_lines("one\\ntwo\\nthree\\n\\n", most=2)
    ['two', 'three']
    """
    kept = text.rstrip()
    if characters is not None:
        kept = kept[-characters:]
    lines = kept.replace("\r\n", "\n").split("\n") if kept else []
    return lines[-most:] if most > 0 else []


def shortened(text: str) -> str:
    """The end of this text that an exception carries."""
    return "\n".join(last_lines(text, MOST_LINES, MOST_CHARACTERS))


def add_note(error: BaseException, stderr: str) -> None:
    """Add the end of an agent's standard error to an exception, if there is any, for the people who read a traceback.

    Python prints notes to the terminal as they are, so control characters are made visible.
    """
    if lines := last_lines(stderr, MOST_LINES, MOST_CHARACTERS):
        from accord.printable import printable  # not needed before something goes wrong

        shown = "".join(f"\n  {line}" for line in printable("\n".join(lines)).split("\n"))
        error.add_note(f"the last lines of the agent's standard error:{shown}")
