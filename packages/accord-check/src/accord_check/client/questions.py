"""Questions to the user: permissions and forms. A client without a user answers them, too, or says that it cannot."""

from __future__ import annotations

from typing import Any

from accord_check.agent.link import Over, Unanswered
from accord_check.client.played import Played
from accord_check.conversation import Exchange, object_of

OPTIONS: list[dict[str, Any]] = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
INVALID_PARAMS = -32602

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "default": "Ada"},
        "count": {"type": "integer", "title": "Count", "default": 3},
        "sure": {"type": "boolean", "title": "Sure", "default": True},
    },
    "required": ["name"],
}


def asks_permission(played: Played, call: str, title: str) -> Exchange:
    """Ask for a permission, about a tool call of this id."""
    played.tool(call, title=title, kind="edit", status="pending")
    about: dict[str, Any] = {"toolCall": {"toolCallId": call}}
    if played.version == 2:
        about = {"title": title, "subject": {"type": "tool_call", **about}}
    return played.call_here("session/request_permission", **about, options=OPTIONS)


async def permitted(played: Played) -> None:
    """Two permissions at once: both are answered, whatever the user chooses."""
    asked = [asks_permission(played, f"check-edit-{number}", f"Edit {number}") for number in (1, 2)]
    for number, exchange in enumerate(asked, 1):
        if await answered_by_user(played, exchange, "permission.always-offered"):
            outcome = object_of(exchange.fields.get("outcome"))
            is_yes = outcome.get("optionId") in ("yes", "always")
            played.update(
                "tool_call_update", toolCallId=f"check-edit-{number}", status="completed" if is_yes else "failed"
            )


async def answered_by_user(played: Played, exchange: Exchange, name: str) -> bool:
    """Wait for an answer that a user may have to give; returns whether it came."""
    try:
        await played.answer(exchange, played.settings.asks_within)
    except Unanswered as error:
        played.skip(name, f"{error}: the client may wait for its user")
        return False
    return True


async def questioned(played: Played) -> None:
    """A form, and a question of a mode that the client did not declare."""
    if not played.declares("elicitation"):
        for name in ("elicitation.form.validated", "elicitation.answer.action", "elicitation.undeclared-mode-code"):
            played.skip(name, "the client does not declare elicitation")
        return
    by_form = played.declares("elicitation.form") or not played.declares("elicitation.url")
    if by_form:
        form = played.call_here("elicitation/create", mode="form", message="Fill this in", requestedSchema=FORM)
        await answered_by_user(played, form, "elicitation.answer.action")
    if by_form and played.declares("elicitation.url"):
        played.skip("elicitation.undeclared-mode-code", "the client declares both modes")
        return
    undeclared: dict[str, Any] = (
        {"mode": "url", "url": "https://example.com/", "elicitationId": "check-link"}
        if by_form
        else {"mode": "form", "requestedSchema": FORM}
    )
    exchange = played.call_here("elicitation/create", message="Open this", **undeclared)
    if not await answered_by_user(played, exchange, "elicitation.undeclared-mode-code"):
        raise Over
    code = object_of(exchange.error).get("code")
    said = f"was refused with {code}" if code is not None else f"was answered with {exchange.result!r:.80}"
    wrong = None if code == INVALID_PARAMS else f"a question in the undeclared mode {undeclared['mode']!r} {said}"
    played.judged("elicitation.undeclared-mode-code", wrong, exchange.frame, exchange.answered)
