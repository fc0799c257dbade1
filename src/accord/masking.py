"""Secrets out of what people read: URLs in errors, logs and traces keep their host and path. PURE."""

from __future__ import annotations

import re

MASK = "***"

_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
# A query without names (`?TOKEN`) is masked whole; with names, each value is.
# Each match takes the whole URL, also one without a query: no character is looked at again from the next `://`.
_QUERY = re.compile(r"(://[^?#\s]*)(?:\?([^#\s'\"<>]*))?")
_VALUE = re.compile(r"=[^&;]*")


def mask_urls(text: str) -> str:
    """This text, with user names, passwords and the values of queries in its URLs replaced by `***`.

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
