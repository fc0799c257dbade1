"""The choice of the protocol's version, and `initialize` read as the chosen version. Pure.

The version is the highest that the agent serves at or below the one that the client asks for. A client that asks for
more than it gets may be newer than this agent: what this agent cannot read of its request is dropped, not refused.

| the client asks for | it gets | its request is read |
|---|---|---|
| the version that it gets | that version | strictly, as the schema of that version has it |
| a higher version | version 2 | leniently; a missing name is `unknown` |
| a higher version | version 1 | leniently: the members of version 1 where there are any, else those of version 2 |
| a lower version than the agent serves | error -32022 | not at all |
| version 0 of an agent that serves only version 1 | version 1 | as version 1 |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from accord.errors import UNSUPPORTED_VERSION, DecodeError, RequestError
from accord.schema import codec, v1
from accord.schema.base import Json

if TYPE_CHECKING:
    from accord.schema import v2

Version = Literal[1, 2]

VERSIONS: tuple[Version, ...] = (1, 2)
"""The versions of the protocol that an agent can serve."""

HIGHEST = 65535
"""The highest number of a version; the schema gives it 16 bits."""


def version_asked(params: Json) -> int:
    """The version that an `initialize` asks for; raises DecodeError."""
    if not isinstance(params, dict):
        raise DecodeError("$", "params must be an object")
    asked = cast("dict[str, Json]", params).get("protocolVersion")
    if type(asked) is not int or not 0 <= asked <= HIGHEST:
        raise DecodeError("$.protocolVersion", f"must be an integer from 0 to {HIGHEST}")
    return asked


def chosen_version(asked: int, served: Sequence[Version]) -> Version:
    """The version of a connection; raises RequestError if the client and the agent have none in common.

    `served` is in ascending order.

    >>> chosen_version(3, (1, 2)), chosen_version(2, (1,)), chosen_version(0, (1,))
    (2, 1, 1)
    """
    fitting: list[Version] = [version for version in served if version <= asked]
    if not fitting and asked == 0 and tuple(served) == (1,):
        return 1  # initialization, Version Negotiation: an agent of version 1 answers with the latest that it supports
    if not fitting:
        data = {"requested": asked, "supported": sorted(served)}
        raise RequestError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return fitting[-1]


def with_known_parts(params: dict[str, Json], version: Version) -> dict[str, Json]:
    """The params of a client that asks for a higher version, with only what this version can read."""
    kept: dict[str, Json] = {"protocolVersion": version}
    if isinstance(meta := params.get("_meta"), dict):
        kept["_meta"] = meta
    if version == 1:
        return kept | _parts_of_version_1(params)
    kept["info"] = _info(params.get("info")) or {"name": "unknown", "version": "unknown"}
    if isinstance(capabilities := params.get("capabilities"), dict):
        kept["capabilities"] = capabilities
    return kept


def _parts_of_version_1(params: dict[str, Json]) -> dict[str, Json]:
    """The client's name and capabilities, for an agent of version 1."""
    kept: dict[str, Json] = {}
    info = _info(params.get("clientInfo")) or _info(params.get("info"))
    if info is not None:
        kept["clientInfo"] = info
    if isinstance(older := params.get("clientCapabilities"), dict):
        kept["clientCapabilities"] = older
    elif isinstance(newer := params.get("capabilities"), dict):
        from accord.schema import v2

        read = _read_or_none(newer, v2.ClientCapabilities)
        kept["clientCapabilities"] = codec.plain(as_declared_in_version_1(read or v2.ClientCapabilities()))
    return kept


def as_declared_in_version_1(capabilities: v2.ClientCapabilities) -> v1.ClientCapabilities:
    """What a client of version 2 would declare in version 1: authors ask for capabilities by these names.

    It lends no files and no terminals, and can show all that each client of version 2 must be able to show.
    """
    from accord.schema.conversion import to_v1

    declared: v1.ClientCapabilities = to_v1(capabilities)
    return msgspec.structs.replace(declared, plan=v1.PlanCapabilities(), subagents=v1.SubagentCapabilities())


def _info(value: Json) -> Json:
    """The name and version of a program; None for another value."""
    return None if _read_or_none(value, v1.Implementation) is None else value


def _read_or_none(value: Json, cls: type[Any]) -> Any:
    try:
        return codec.convert(value, cls)
    except DecodeError:
        return None
