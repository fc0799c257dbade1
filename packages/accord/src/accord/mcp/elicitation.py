"""An MCP server's questions to the user, passed on to the client; both protocols use the same JSON for them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, cast

from accord.errors import AccordError, ProtocolError
from accord.mcp.surroundings import Surroundings
from accord.schema import codec, v1
from accord.services.form_fields import asked_for, form_excess, problems, secrets_in

if TYPE_CHECKING:
    import mcp_types


class Questions:
    """The questions of one server."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._pages: set[str] = set()
        """Ids of the pages that the user agreed to visit."""

    async def ask(
        self, params: mcp_types.ElicitRequestParams, tool_call_id: v1.ToolCallId | None
    ) -> mcp_types.ElicitResult:
        """Ask the user; a question that this client cannot ask is declined, and so is a form that asks for secrets."""
        import mcp_types

        try:
            asked = question(self._surroundings, params, tool_call_id)
            answer = await self._surroundings.peer.request(asked)
        except AccordError:
            return mcp_types.ElicitResult(action="decline")
        if not isinstance(answer, v1.ElicitationAcceptAction):
            declined = isinstance(answer, v1.ElicitationDeclineAction)
            return mcp_types.ElicitResult(action="decline" if declined else "cancel")
        if isinstance(asked, v1.ElicitationUrlMode):
            self._pages.add(asked.elicitation_id)
        content = cast("dict[str, Any] | None", answer.content)
        if isinstance(asked, v1.ElicitationFormMode) and content is not None:
            content = cast("dict[str, Any]", asked_for(asked.requested_schema, content))
            if problems(asked.requested_schema, content):
                return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=content)

    async def completed(self, elicitation_id: str) -> None:
        """Pass on that the user has finished what a page was opened for."""
        if elicitation_id in self._pages:
            self._pages.discard(elicitation_id)
            done = v1.CompleteElicitationNotification(v1.ElicitationId(elicitation_id))
            await self._surroundings.peer.notify(done)


def question(
    surroundings: Surroundings, params: mcp_types.ElicitRequestParams, tool_call_id: v1.ToolCallId | None
) -> v1.CreateElicitationRequest:
    """The server's question as a request to the client; raises ProtocolError for one that must not be asked."""
    common: dict[str, Any] = {
        "message": params.message,
        "session_id": surroundings.session_id,
        "tool_call_id": tool_call_id,
    }
    if params.mode == "url":
        elicitation_id = v1.ElicitationId(params.elicitation_id or uuid.uuid4().hex)
        return v1.ElicitationUrlMode(**common, elicitation_id=elicitation_id, url=params.url)
    form = codec.decode(codec.encode(params.requested_schema), v1.ElicitationSchema)
    if (problem := form_excess(form)) is not None:
        raise ProtocolError(problem)
    if secrets := secrets_in(form):
        raise ProtocolError(f"form must not ask for secrets, but has {', '.join(secrets)}; use a URL for them")
    return v1.ElicitationFormMode(**common, requested_schema=form)
