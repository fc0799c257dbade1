"""`SecondAsks`: sends requests of version 1 to a client of version 2, and gives their answers in version 1.

Authors, tools and turns ask in one way. A question about a tool call tells the client of that call as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from accord.engine.peer import Peer
from accord.errors import CapabilityMissing
from accord.schema import v1
from accord.schema.base import Json, Request
from accord.schema.conversion import to_v1, to_v2

if TYPE_CHECKING:
    from accord.agent.voices.base import Voice

ResultT = TypeVar("ResultT")

_NOT_LENT: dict[type[Any], str] = {
    v1.ReadTextFileRequest: "fs.read_text_file",
    v1.WriteTextFileRequest: "fs.write_text_file",
    v1.CreateTerminalRequest: "terminal",
    v1.TerminalOutputRequest: "terminal",
    v1.WaitForTerminalExitRequest: "terminal",
    v1.KillTerminalRequest: "terminal",
    v1.ReleaseTerminalRequest: "terminal",
}
"""The requests that version 2 does not have, and the capability that no client of it has."""


class SecondAsks:
    """Sends requests to a client of version 2."""

    def __init__(self, peer: Peer, voice: Voice | None = None) -> None:
        self._peer = peer
        self._voice = voice

    async def request(self, request: Request[ResultT], /, *, force: bool = False) -> ResultT:
        """Send a request; its result, in version 1."""
        if (missing := _NOT_LENT.get(request.__class__)) is not None:
            raise CapabilityMissing(missing, request.__method__)
        if isinstance(request, v1.RequestPermissionRequest) and self._voice is not None:
            self._voice.told(request.tool_call)
        return cast("ResultT", to_v1(await self._peer.request(to_v2(request), force=force)))

    async def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Json:
        """Send a request in plain JSON values; they are sent as they are."""
        return await self._peer.request_raw(method, params, session_id=session_id)
