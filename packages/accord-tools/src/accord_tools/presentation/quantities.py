"""Numbers, sizes and times in readable form. PURE."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things; `many` is their name if it is not `one` with an s.

    >>> counted(1, "file"), counted(1200, "file"), counted(2, "line of text", "lines of text")
    ('1 file', '1,200 files', '2 lines of text')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def size_in_words(count: int | None) -> str:
    """Return a number of bytes in words.

    >>> size_in_words(999), size_in_words(12_345_678)
    ('999 bytes', '12.3 MB')
    """
    if count is None:
        return "?"
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} bytes"


def seconds_in_words(seconds: float) -> str:
    """Return a length of time in about three figures.

    >>> seconds_in_words(0.00042), seconds_in_words(0.123), seconds_in_words(12.3), seconds_in_words(3725)
    ('0.4 ms', '123 ms', '12.30 s', '62:05 min')
    """
    if abs(seconds) < 1:
        return f"{seconds * 1000:.{1 if abs(seconds) < 0.01 else 0}f} ms"
    return f"{seconds:.2f} s" if seconds < 60 else f"{minutes(seconds)} min"


def minutes(seconds: float) -> str:
    """Return a length of time in minutes and seconds.

    >>> minutes(65.7)
    '1:05'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def ago(seconds: float | None) -> str:
    """Return how long ago something was.

    >>> ago(7300), ago(5)
    ('2 hours ago', 'just now')
    """
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds is not None and seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def minute_of(when: str | None) -> str:
    """Return a time of the protocol in the user's own zone, to the minute; any other text is not changed."""
    from datetime import datetime  # help texts of commands load this module

    try:
        return datetime.fromisoformat(when or "").astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return when or ""
