"""Requests of version 1 on a connection of version 2: converted and sent, and their results converted back.

`RemoteAgent` and `RemoteSession`, turns and tools make the requests of version 1, so that one program serves peers of
both versions. Classes of version 2 pass unchanged. The needs of a request are found by its class of version 1, before
it is converted; only what version 1 takes for granted is checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from accord.engine.outgoing_requests import PendingRequest
from accord.engine.peer import Peer
from accord.errors import NOT_FOUND, CapabilityMissing, ConversionError, PeerError
from accord.schema import v1, v2
from accord.schema.base import Json, Notification, Request, result_type
from accord.schema.capabilities import CapabilityGuard, capability_for
from accord.schema.conversion import to_v1, to_v2

if TYPE_CHECKING:
    from accord.dialects import Dialect

ResultT = TypeVar("ResultT")

_ALWAYS_SUCCEED = (v1.CloseSessionRequest, v1.DeleteSessionRequest)
"""Requests whose purpose is fulfilled when the agent answers that the session does not exist."""


class V2Agent:
    """An agent of version 2, for callers who use the classes of either version."""

    def __init__(self, peer: Peer, declared: v2.AgentCapabilities) -> None:
        self._peer = peer
        self._declared = declared

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send a request; its result is in the version of the request."""
        try:
            result = await self._peer.request(
                self._sendable(request, force=force),
                timeout=timeout,
                idle_timeout=idle_timeout,
                force=True,
            )
        except PeerError as error:
            if error.code == NOT_FOUND and isinstance(request, _ALWAYS_SUCCEED):
                # schema, session/close and session/delete: success if the session does not exist.
                return result_type(request.__class__)()  # type: ignore[no-any-return]
            raise
        answer: ResultT = _result_as_v1(request, result)
        return answer

    async def open_session(self, request: Request[Any], timeout: float | None) -> Any:  # noqa: ASYNC109
        """Send a request that opens a session; its result is in version 2, for a session of version 2."""
        return await self._peer.request(self._sendable(request, force=False), timeout=timeout, force=True)

    def post(self, request: Request[Any]) -> PendingRequest[Any]:
        """Send a request now, and handle its answer, which is in version 2, later."""
        return self._peer.post(self._sendable(request, force=False), force=True)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send a notification."""
        await self._peer.notify(_converted(notification), force=force)

    def _sendable(self, request: Request[Any], *, force: bool) -> Request[Any]:
        """The request of version 2 to send; raises CapabilityMissing unless it may be sent."""
        if not force:
            # By the original class: capabilities are found by their places in version 1.
            _guard_of(request.__class__).check(request, self._peer.capabilities, unstable=self._peer.unstable)
        if request.__class__.__module__.startswith("accord.schema."):
            _must_be_taken(request, self._declared)
        converted: Request[Any] = _converted(request)
        return converted


class V2Client:
    """Sends requests to a client of version 2."""

    def __init__(self, peer: Peer, dialect: Dialect | None = None) -> None:
        self._peer = peer
        self._dialect = dialect

    async def request(self, request: Request[ResultT], /, *, force: bool = False) -> ResultT:
        """Send a request; its result, in version 1."""
        if (method := request.__method__).startswith(("fs/", "terminal/")):  # no client of version 2 lends these
            raise CapabilityMissing(str(capability_for(type(request))), method)
        if isinstance(request, v1.RequestPermissionRequest) and self._dialect is not None:
            self._dialect.note_tool_call(request.tool_call)
        return cast("ResultT", to_v1(await self._peer.request(to_v2(request), force=force)))

    async def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Json:
        """Send a request in plain JSON values, unchanged."""
        return await self._peer.request_raw(method, params, session_id=session_id)


# The conversions


def _result_as_v1(request: Request[Any], result: Any) -> Any:
    """The result of a request of version 1 as a result of version 1; anything else unchanged."""
    if request.__class__.__module__.startswith("accord.schema.v2"):
        return result
    match result:
        case v2.NewSessionResponse():
            kind = getattr(v1, type(result).__name__)
            return kind(result.session_id, config_options=options_as_v1(result.config_options), meta=result.meta)
        case v2.SessionOptionsResponse():  # its commands are sent again when the session is opened
            return v1.SessionOptionsResponse(config_options=options_as_v1(result.config_options), meta=result.meta)
        case v2.ResumeSessionResponse():
            loads = isinstance(request, v1.LoadSessionRequest)
            answer = v1.LoadSessionResponse if loads else v1.ResumeSessionResponse
            return answer(config_options=options_as_v1(result.config_options), meta=result.meta)
        case v2.SetSessionConfigOptionResponse():
            return v1.SetSessionConfigOptionResponse(options_as_v1(result.config_options) or [], meta=result.meta)
        case _:
            return (known_as_v1(result) or [result])[0]


def options_as_v1(options: list[v2.SessionConfigOption]) -> list[v1.SessionConfigOption] | None:
    """Return config options in types of version 1; None if there are none. Options that version 1 lacks are
    left out.
    """
    return [shown for option in options for shown in known_as_v1(option)] or None


def known_as_v1(value: Any) -> list[Any]:
    """Return this value of version 2 as one of version 1, in a list; an empty list if version 1 has none for it."""
    try:
        return [to_v1(value)]
    except ConversionError:
        return []


def _converted(message: Any) -> Any:
    module = message.__class__.__module__
    return to_v2(message) if module.startswith("accord.schema.v1") else message


def _must_be_taken(request: Any, declared: v2.AgentCapabilities) -> None:
    method: str = request.__method__
    sessions = declared.session
    if method.startswith("session/") and sessions is None:
        raise CapabilityMissing("session", method)
    servers = getattr(request, "mcp_servers", ())
    if any(isinstance(server, v1.McpServerStdio | v2.McpServerStdio) for server in servers):
        taken = None if sessions is None or sessions.mcp is None else sessions.mcp.stdio
        if taken is None:
            raise CapabilityMissing("session.mcp.stdio", "the MCP servers that are started as programs")


_guards: dict[type, CapabilityGuard] = {}


def _guard_of(cls: type[Request[Any]]) -> CapabilityGuard:
    return _guards.get(cls) or _guards.setdefault(cls, CapabilityGuard(cls))
