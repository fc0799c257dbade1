"""`Home`: what handlers of a proxy use of the connection that they run on; `LiveProxy` is one."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from accord.proxy.sent import Sent
from accord.proxy.switchboard import Switchboard
from accord.schema.base import Notification, Request
from accord.tasks import Tasks

Side: TypeAlias = Literal["client", "agent"]
"""The two neighbours of a proxy."""


def other(side: Side) -> Side:
    """The other side of a proxy."""
    return "agent" if side == "client" else "client"


class Home(Protocol):
    """A proxy on one connection."""

    board: Switchboard
    tasks: Tasks
    version: int
    appends_to_system_prompt: bool
    unsent: set[Any]
    """Requests that have handlers, and have not been sent on."""

    def state_of(self, session: str | None) -> Any:
        """The state of a session, made when it is first asked for."""
        ...

    def with_server(self, request: Any, server: Any) -> Any:
        """A request that opens a session, with an MCP server for this session."""
        ...

    def is_first(self, session: str | None, what: object) -> bool:
        """Whether this is asked for the first time for a session."""
        ...

    def answer_lane(self, side: Side, session: str | None) -> str:
        """The lane in which the answer to a request from this side waits: that of the other side."""
        ...

    def tell(self, side: Side, notification: Notification) -> None:
        """Send a notification to this side."""
        ...

    async def ask(self, side: Side, request: Request[Any]) -> tuple[Any, bytes]:
        """Send a request of the proxy's own to this side; its result, and that as JSON."""
        ...

    def post(self, side: Side, method: str, params: bytes | None, session: str | None) -> Sent:
        """Send a request to this side; `result_of` waits for its result."""
        ...

    async def result_of(self, sent: Sent, result_type: Any) -> tuple[Any, bytes]:
        """Wait for the result of a request: the value, and its JSON."""
        ...
