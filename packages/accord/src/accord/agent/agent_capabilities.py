"""What an agent declares and accepts: its capabilities, the content of prompts, and the protocol's version. Pure.

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

from collections.abc import Collection, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import msgspec

from accord.engine.handlers import Handlers
from accord.errors import UNSUPPORTED_VERSION, DecodeError, RequestError
from accord.schema import codec, v1
from accord.schema.base import Json
from accord.schema.capabilities import mcp_capabilities
from accord.schema.v1 import ContentBlock

if TYPE_CHECKING:
    from accord.schema import v2


_YES: dict[Any, Any] = {
    v1.LoadSessionRequest: True,
    v1.ListSessionsRequest: v1.SessionListCapabilities(),
    v1.ResumeSessionRequest: v1.SessionResumeCapabilities(),
    v1.CloseSessionRequest: v1.SessionCloseCapabilities(),
    v1.DeleteSessionRequest: v1.SessionDeleteCapabilities(),
    v1.ForkSessionRequest: v1.SessionForkCapabilities(),
    v1.ArchiveSessionRequest: v1.SessionArchiveCapabilities(),
    v1.SessionStatusRequest: v1.SessionStatusCapabilities(),
    v1.SetSessionTitleRequest: v1.SessionTitleCapabilities(),
    v1.SessionOptionsRequest: v1.SessionOptionsCapabilities(),
    v1.LogoutRequest: v1.LogoutCapabilities(),
    v1.AuthStatusRequest: v1.AuthStatusCapabilities(),
    v1.ListProvidersRequest: v1.ProvidersCapabilities(),
}
"""The capability that declares that a message is handled; the message's `needs` says where it goes."""

LASTING = {
    v1.LoadSessionRequest,
    v1.ListSessionsRequest,
    v1.ResumeSessionRequest,
    v1.CloseSessionRequest,
    v1.DeleteSessionRequest,
    v1.ForkSessionRequest,  # only proposed; declaring it is how it is negotiated
}
"""The requests that every agent handles, because every agent has a store."""


PROPOSED = {
    v1.ArchiveSessionRequest,
    v1.SessionStatusRequest,
    v1.SetSessionTitleRequest,
    v1.SessionOptionsRequest,
    v1.AuthStatusRequest,
}
"""The requests that an agent also handles if its author enables proposed parts of the protocol."""

_OVERRIDE = v1.SessionSystemPromptModeCapabilities(v1.SessionSystemPromptOverrideCapabilities())


def capabilities_of(
    prompt: v1.PromptCapabilities,
    handlers: Handlers,
    *,
    can_log_out: bool,
    unstable: bool = False,
    tells_auth_status: bool = False,
    has_providers: bool = False,
    system_prompts: Collection[str] = (),
) -> v1.AgentCapabilities:
    """Return the capabilities of an agent that accepts this content in prompts and has these handlers.

    What is only proposed is declared where the author registered something for it, or with `unstable`.
    """
    handled: set[Any] = {message for message in _YES if handlers.handles(message)} | LASTING
    handled |= PROPOSED if unstable else set()
    handled |= {v1.LogoutRequest} if can_log_out else set()
    handled |= {v1.AuthStatusRequest} if tells_auth_status else set()
    handled |= {v1.ListProvidersRequest} if has_providers else set()
    bare = v1.AgentCapabilities(
        prompt_capabilities=prompt,
        mcp_capabilities=mcp_capabilities(),
        session_capabilities=v1.SessionCapabilities(
            additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
            system_prompt=_system_prompt(system_prompts),
        ),
    )
    return reduce(lambda declared, message: _with(declared, message.__needs__, _YES[message]), handled, bare)


def _system_prompt(modes: Collection[str]) -> v1.SessionSystemPromptCapabilities | None:
    if not modes:
        return None
    return v1.SessionSystemPromptCapabilities(_OVERRIDE if "override" in modes else None)


def _with(declared: Any, path: str, value: Any) -> Any:
    """Return these capabilities with this one set."""
    step, _, rest = path.partition(".")
    return msgspec.structs.replace(declared, **{step: _with(getattr(declared, step), rest, value) if rest else value})


# The content of prompts


Accepted = Literal["image", "audio", "embedded"]


class Accepts:
    """The kinds of content that an agent takes in prompts."""

    def __init__(self, kinds: Collection[Accepted]) -> None:
        if unknown := set(kinds) - set(get_args(Accepted)):
            raise ValueError(
                f"accepts must name only {', '.join(get_args(Accepted))}, got {', '.join(map(repr, sorted(unknown)))}"
            )
        self._kinds = frozenset(kinds)

    def capabilities(self) -> v1.PromptCapabilities:
        return v1.PromptCapabilities(
            image="image" in self._kinds,
            audio="audio" in self._kinds,
            embedded_context="embedded" in self._kinds,
        )


def text_of(prompt: Sequence[ContentBlock]) -> str:
    """The texts of a prompt, in their order."""
    return "\n".join(block.text for block in prompt if isinstance(block, v1.TextContent))


Version = Literal[1, 2]

VERSIONS: tuple[Version, ...] = (1, 2)
"""The versions of the protocol that an agent can serve."""

HIGHEST = 65535
"""The highest number of a version; the schema gives it 16 bits."""


def version_asked(params: Json) -> int:
    """Return the version that an `initialize` requests; raises DecodeError."""
    if not isinstance(params, dict):
        raise DecodeError("$", "params must be an object")
    asked = cast("dict[str, Json]", params).get("protocolVersion")
    if type(asked) is not int or not 0 <= asked <= HIGHEST:
        raise DecodeError("$.protocolVersion", f"must be an integer from 0 to {HIGHEST}")
    return asked


def chosen_version(asked: int, served: Sequence[Version]) -> Version:
    """Choose the version of a connection; raises RequestError if the client and the agent have none in common.

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
    """Return the params of a client that asks for a higher version, with only what this version can read."""
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
    """Return in terms of version 1 what a client of version 2 declares: authors look capabilities up by these names.

    It lends no files and no terminals, and can show all that each client of version 2 must be able to show.
    """
    from accord.schema.conversion import to_v1

    declared: v1.ClientCapabilities = to_v1(capabilities)
    return msgspec.structs.replace(declared, plan=v1.PlanCapabilities(), subagents=v1.SubagentCapabilities())


def initialize_in_version_1(said: dict[str, Json]) -> v1.InitializeRequest:
    """Translate the params of `initialize` of either version to version 1."""
    if said.get("protocolVersion") == 1 or "capabilities" not in said:
        return codec.convert(said, v1.InitializeRequest)
    from accord.schema import v2  # programs of version 1 do not need it

    second = codec.convert(said, v2.InitializeRequest)
    declared = as_declared_in_version_1(second.capabilities)
    return v1.InitializeRequest(second.protocol_version, declared, second.info, meta=second.meta)


def _info(value: Json) -> Json:
    """Return the name and version of a program; None for another value."""
    return None if _read_or_none(value, v1.Implementation) is None else value


def _read_or_none(value: Json, cls: type[Any]) -> Any:
    try:
        return codec.convert(value, cls)
    except DecodeError:
        return None
