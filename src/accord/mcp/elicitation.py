"""What an MCP server wants to know from the user, asked of the client: forms and URLs are the same JSON in both."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, cast

from accord.errors import AccordError, ProtocolError
from accord.mcp.surroundings import Surroundings
from accord.schema import codec, v1
from accord.services.elicitation.form import asked_for, problems
from accord.services.elicitation.form_bounds import excess, secrets_in

if TYPE_CHECKING:
    import mcp_types


class Questions:
    """What one server has asked."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._pages: set[str] = set()
        """Ids of the pages that the user agreed to visit."""

    async def ask(
        self, params: mcp_types.ElicitRequestParams, tool_call_id: v1.ToolCallId | None
    ) -> mcp_types.ElicitResult:
        """The user's answer; what this client cannot ask is declined, and so are forms that ask for secrets."""
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
        """What the user was sent to a page for is done, says the server."""
        if elicitation_id in self._pages:
            self._pages.discard(elicitation_id)
            done = v1.CompleteElicitationNotification(v1.ElicitationId(elicitation_id))
            await self._surroundings.peer.notify(done)


def question(
    surroundings: Surroundings, params: mcp_types.ElicitRequestParams, tool_call_id: v1.ToolCallId | None
) -> v1.CreateElicitationRequest:
    common: dict[str, Any] = {
        "message": params.message,
        "session_id": surroundings.session_id,
        "tool_call_id": tool_call_id,
    }
    if params.mode == "url":
        elicitation_id = v1.ElicitationId(params.elicitation_id or uuid.uuid4().hex)
        return v1.ElicitationUrlMode(**common, elicitation_id=elicitation_id, url=params.url)
    form = codec.decode(codec.encode(params.requested_schema), v1.ElicitationSchema)
    if (problem := excess(form)) is not None:
        raise ProtocolError(problem)
    if secrets := secrets_in(form):
        raise ProtocolError(f"a form asks for no secrets: {', '.join(secrets)}")
    return v1.ElicitationFormMode(**common, requested_schema=form)
