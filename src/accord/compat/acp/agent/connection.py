"""`AgentSideConnection`: an agent's connection, on which its client is an object with the client's methods."""

from __future__ import annotations

from typing import Any, cast

from accord.compat.acp.agent.router import build_agent_router
from accord.compat.acp.client.router import MODES
from accord.compat.acp.exceptions import RequestError
from accord.compat.acp.interfaces import Client
from accord.compat.acp.meta import CLIENT_METHODS
from accord.compat.calls import CLIENT_CALLS
from accord.compat.models.building import model_named
from accord.compat.side import Side, connected, told, with_calls

__all__ = ["AgentSideConnection"]

UPDATE = CLIENT_METHODS["session_update"]


@with_calls(CLIENT_CALLS, Client)
class AgentSideConnection(Side):
    """The connection of an agent: it has the methods of `Client`, and the agent handles what arrives.

    `to_agent` is the agent, or a function that makes it from this connection.
    """

    def __init__(
        self,
        to_agent: Any,
        input_stream: Any,
        output_stream: Any = None,
        listening: bool = True,
        *,
        use_unstable_protocol: bool = False,
        **connection_kwargs: Any,
    ) -> None:
        agent = connected(to_agent, self)
        router = build_agent_router(agent, use_unstable_protocol=use_unstable_protocol)
        super().__init__(router, input_stream, output_stream, role="agent", listening=listening, **connection_kwargs)
        told(agent, self)

    async def listen(self) -> None:
        """Handle messages until the client ends the connection."""
        await self._conn.main_loop()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        """Send an update of the session."""
        notification = model_named("SessionNotification")(session_id=session_id, update=update)
        if kwargs:
            notification.field_meta = kwargs
        await self._conn.send_notification(UPDATE, notification)

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        """Ask the user for values, or to visit a URL."""
        for (word, _), (request, model) in MODES.items():
            if isinstance(mode, model_named(model)):
                given = cast("dict[str, Any]", vars(mode))
                fields = {name: value for name, value in given.items() if value is not None}
                question = model_named(request)(message=message, mode=word, field_meta=kwargs or None, **fields)
                return _answer(await self._conn.send_request(CLIENT_METHODS["elicitation_create"], question))
        raise TypeError(f"mode must be one of the models of ElicitationMode, got {type(mode).__name__}")


def _answer(result: Any) -> Any:
    kinds = {
        "accept": "AcceptElicitationResponse",
        "decline": "DeclineElicitationResponse",
        "cancel": "CancelElicitationResponse",
    }
    if not isinstance(result, dict):
        raise RequestError.internal_error({"details": "the answer to the question is not an object"})
    return model_named(kinds.get(result.get("action"), "OtherElicitationResponse")).model_validate(result)  # type: ignore[arg-type]
