"""The version in `initialize`: the one thing that a conductor reads of the protocol. PURE.

The conductor speaks for the chain, so it offers no more than it knows: the highest version at or below the one that the
client asks for. Each component may choose a lower one in its answer, which nothing changes. After `initialize` the
conductor passes on bytes of any version.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

LOWEST, HIGHEST = 1, 2
"""The versions of the protocol whose `initialize` is known."""


class BadVersion(ValueError):
    """The params of `initialize` name no version of the protocol."""


def offered(params: Raw | None) -> bytes | Raw:
    """The params of `initialize` for the chain: as they came, unless the client asks for a version that is not known.

    >>> bytes(offered(Raw(b'{"protocolVersion":7,"more":1}')))
    b'{"protocolVersion":2,"more":1}'
    """
    members = _members(params)
    asked = members.get("protocolVersion")
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 0:
        found = "nothing" if asked is None else msgspec.json.encode(asked).decode()[:40]
        raise BadVersion(f"protocolVersion must be a whole number of at least 0, got {found}")
    version = max(LOWEST, min(asked, HIGHEST))
    if version == asked and params is not None:
        return params
    return msgspec.json.encode({**members, "protocolVersion": version})


def version_in(value: Raw | bytes | None) -> int | None:
    """The version that the params or the result of `initialize` name; None if they name none."""
    try:
        version = _members(value).get("protocolVersion")
    except BadVersion:
        return None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _members(value: Raw | bytes | None) -> dict[str, Any]:
    try:
        return {} if value is None else msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadVersion(f"the params of initialize cannot be read: {error}") from None
