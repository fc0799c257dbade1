r"""The path that a `file:` URI names, by the rules of the system that opens it. PURE.

| URI | POSIX | Windows |
|---|---|---|
| `file:///w/a%20b.py`, `file://localhost/w/a%20b.py` | `/w/a b.py` | `\w\a b.py` |
| `file:///C:/a.py`, `file:///C%3A/a.py`, `file:/C|/a.py` | `C:/a.py` | `C:\a.py` |
| `file://server/share/a.py` | none: it is on another machine | `\\server\share\a.py` |
| `file:////server/share/a.py` | `//server/share/a.py` | `\\server\share\a.py` |
"""

from __future__ import annotations

import re
import sys
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote, urlsplit

_DRIVE = re.compile(r"/?([a-zA-Z])[:|](?=/|$)")


def is_file_uri(text: str) -> bool:
    """Whether this is a `file:` URI."""
    return text[:5].lower() == "file:"


def path_of_uri(uri: str) -> Path | None:
    """The path of a `file:` URI on this machine; None for another URI, and for a path on another machine.

    >>> str(path_of_uri("file:///w/a%20b.py")).replace("\\\\", "/")
    '/w/a b.py'
    """
    text = path_text(uri, windows=sys.platform == "win32")
    return None if text is None else Path(text)


def path_text(uri: str, *, windows: bool) -> str | None:
    """The path of a `file:` URI as text, on Windows or on another system; None if it has none there."""
    if not is_file_uri(uri):
        return None
    parts = urlsplit(uri)
    plain = unquote(parts.path)
    if "\0" in plain:
        return None
    host = "" if parts.netloc.lower() == "localhost" else unquote(parts.netloc)
    if _DRIVE.fullmatch(host):  # file://C:/a.py, which some programs write
        plain, host = f"/{host}{plain}", ""
    if drive := _DRIVE.match(plain):
        plain = f"{drive[1]}:{plain[drive.end() :]}"
        return str(PureWindowsPath(plain)) if windows else plain
    if windows:
        return str(PureWindowsPath(f"//{host}{plain}" if host else plain))
    return None if host else plain
