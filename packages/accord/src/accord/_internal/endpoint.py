"""`Endpoint`: where a provider's models are reached, with headers whose values are never shown. PURE.

A client sends endpoints to an agent (`providers/set`), and the agent calls its models there. The headers hold
credentials. So their values are not in any `repr`, and `hidden` masks them in texts that others wrote, such as the
errors of an HTTP library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import urlsplit

from accord.redaction import MASK, mask_urls

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SHORTEST_SECRET = 4
"""Characters of a word that `hidden` masks; shorter ones would mask half of any text."""


class Headers(Mapping[str, str]):
    """HTTP headers by name, in any case; of several headers of one name, the last counts.

    >>> Headers({"X-Key": "s3cret"})["x-key"]
    's3cret'
    >>> Headers({"X-Key": "s3cret"})
    Headers({'X-Key': '***'})
    """

    __slots__ = ("_by_lower_name",)

    def __init__(self, given: Mapping[str, str]) -> None:
        self._by_lower_name: dict[str, tuple[str, str]] = {}
        for name, value in cast("dict[object, object]", dict(given)).items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError("headers must be texts by their names; one name or value is not text")
            if not re.fullmatch(_NAME, name):
                raise ValueError(f"headers must have names that HTTP allows, got {name[:60]!r}")
            if any(character in value for character in "\r\n\0"):
                raise ValueError(f"the header {name!r} must be one line of text, got a line break or a null byte")
            self._by_lower_name[name.lower()] = name, value

    def __getitem__(self, name: str) -> str:
        return self._by_lower_name[name.lower()][1]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._by_lower_name

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._by_lower_name.values())

    def __len__(self) -> int:
        return len(self._by_lower_name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        there = {str(name).lower(): value for name, value in cast("Mapping[object, object]", other).items()}
        return {name: value for name, (_, value) in self._by_lower_name.items()} == there

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Headers({dict.fromkeys(self, MASK)})"


class Endpoint:
    """Where the models of a provider are reached: the kind of API, the URL, and the headers of each request.

    gateway = accord.Endpoint("anthropic", "https://gateway.example/a", {"Authorization": f"Bearer {key}"})
    async with accord.connect(["my-agent"], providers={"main": gateway}) as remote: ...

    `api_type` is `anthropic`, `openai`, `azure`, `vertex`, `bedrock`, or a word of the agent's own. The headers' values
    are secrets: they are sent, and shown nowhere.
    """

    __slots__ = ("api_type", "base_url", "headers")

    def __init__(self, api_type: str, base_url: str, headers: Mapping[str, str] | None = None) -> None:
        for name, value in (("api_type", api_type), ("base_url", base_url)):
            if not isinstance(cast("object", value), str):
                raise TypeError(f"{name} must be text, got {type(value).__name__}")
        if not api_type:
            raise ValueError("api_type must name a kind of API, such as 'anthropic', got an empty text")
        _check_url(base_url)
        self.api_type = api_type
        """The kind of API that the URL speaks."""
        self.base_url = base_url
        """The URL that the paths of the API are below."""
        self.headers = Headers(headers or {})
        """The headers of each request; `dict(endpoint.headers)` has their values."""

    def hidden(self, text: str) -> str:
        """Return this text without the headers' values, and with its URLs masked.

        >>> Endpoint("openai", "https://a.example", {"Authorization": "Bearer s3cret"}).hidden("401 for s3cret")
        '401 for ***'
        """
        words = {word for value in self.headers.values() for word in (value, *value.split())}
        for word in sorted(words, key=len, reverse=True):
            if len(word) >= _SHORTEST_SECRET:
                text = text.replace(word, MASK)
        return mask_urls(text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Endpoint):
            return NotImplemented
        return (self.api_type, self.base_url, self.headers) == (other.api_type, other.base_url, other.headers)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Endpoint({self.api_type!r}, {mask_urls(self.base_url)!r}, headers={list(self.headers)})"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host, parts = None, None
    if parts is None or parts.scheme not in ("http", "https") or not host or any(map(_is_blank, url)):
        raise ValueError(f"base_url must be a whole http or https URL, got {mask_urls(url)[:80]!r}")
    if parts.username is not None or parts.password is not None:
        # The agent reports base URLs when it lists its providers.
        raise ValueError("base_url must not hold a user name or a password; send them in a header")


def _is_blank(character: str) -> bool:
    return character <= " " or character == "\x7f"
