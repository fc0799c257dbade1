"""URIs of documents: of a path, and in one form for comparing. PURE."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import quote, unquote, urlsplit

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
_DRIVE = re.compile(r"/?([a-zA-Z])(?::|%3[aA])(?=/|$)")


def is_uri(text: str) -> bool:
    """Whether this is a URI rather than a path; one letter and a colon are a drive."""
    return _SCHEME.match(text) is not None


def uri_of(path: str | Path, folder: Path | None = None) -> str:
    """The `file:` URI of a path, from this folder on if it is relative; a URI stays as it is."""
    if isinstance(path, str) and is_uri(path):
        return path
    return (Path(path) if folder is None else folder / path).absolute().as_uri()


def key_of(uri: str) -> str:
    """The same text for URIs that name the same document, whatever is percent-encoded in them.

    >>> key_of("FILE:///C%3A/a%20b") == key_of("file:///c:/a b")
    True
    """
    if uri[:5].lower() != "file:":
        return uri
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if drive := _DRIVE.match(path):
        path = "/" + str(PureWindowsPath(f"{drive[1].lower()}:{path[drive.end() :]}").as_posix())
    else:
        path = str(PurePosixPath(path))
    host = "" if parts.netloc == "localhost" else parts.netloc.lower()
    rest = f"?{parts.query}#{parts.fragment}" if parts.query or parts.fragment else ""
    return f"file://{host}{quote(path)}{rest}"
