"""Masks secrets in URLs that people read, in errors, logs and traces; host and path stay. PURE."""

from __future__ import annotations

import re

MASK = "***"
"""What replaces a secret."""

_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
# A query without names (`?TOKEN`) is masked whole; with names, each value is.
# Each match takes the whole URL, also one without a query, so that no character is scanned twice.
_QUERY = re.compile(r"(://[^?#\s]*)(?:\?([^#\s'\"<>]*))?")
_VALUE = re.compile(r"=[^&;]*")


def mask_urls(text: str) -> str:
    """This text, with user names, passwords and query values in its URLs replaced by `***`.

    >>> mask_urls("no answer from https://ada:secret@example.com/acp?token=abc&page=2")
    'no answer from https://***@example.com/acp?token=***&page=***'
    >>> mask_urls("why? because")
    'why? because'
    """
    return _QUERY.sub(_masked_query, _USER_INFO.sub(f"{MASK}@", text))


def _masked_query(found: re.Match[str]) -> str:
    before, query = found.groups()
    if query is None:
        return before
    return f"{before}?{_VALUE.sub(f'={MASK}', query) if '=' in query else MASK}"
