"""Interrupts of LangGraph as questions to the user, for the forms that its own middleware and examples use."""

from __future__ import annotations

from typing import Any, cast

from accord_adapters.narration import Narration, json_of

REFUSED = "The user does not allow this."


async def answer_to(value: Any, narration: Narration) -> Any:
    """What the graph resumes with, after the user was asked."""
    requests = cast("dict[str, Any]", value).get("action_requests") if isinstance(value, dict) else None
    if isinstance(requests, list):
        actions = cast("list[dict[str, Any]]", requests)
        decided = [await _decided(action, place, narration) for place, action in enumerate(actions)]
        return {"decisions": [{"type": "approve"} if it else {"type": "reject", "message": REFUSED} for it in decided]}
    if (call_id := narration.only_open_call) is not None:
        return await narration.ask(call_id)
    return bool(await narration.turn.ask(_title(cast("object", value))))


async def _decided(request: dict[str, Any], place: int, narration: Narration) -> bool:
    """Whether the user allows this action, which the client knows as a tool call."""
    name = str(request.get("name", request.get("action", "tool")))
    arguments = json_of(request.get("args"))
    call_id = narration.open_call(name, arguments)
    return await narration.ask(call_id or f"{name} {place}", name, arguments)


def _title(value: object) -> str:
    """What the user is asked: the text of the interrupt, or its question."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        value = given.get("question") or given.get("description") or given.get("message") or str(given)
    return str(value)
