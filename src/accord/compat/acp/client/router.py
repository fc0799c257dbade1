"""The router of a client: its methods, by those of the protocol."""

from __future__ import annotations

from typing import Any

from accord.compat.acp.exceptions import RequestError
from accord.compat.acp.meta import CLIENT_METHODS
from accord.compat.acp.router import AsyncHandler, MessageRouter, Route, resolved, warn_of_old_style
from accord.compat.acp.utils import normalize_result
from accord.compat.calls import CLIENT_CALLS
from accord.compat.models import BaseModel
from accord.compat.models.building import model_named
from accord.compat.models.invalid import ValidationError

__all__ = ["build_client_router"]

MODES = {
    ("form", True): ("CreateFormSessionElicitationRequest", "ElicitationFormSessionMode"),
    ("form", False): ("CreateFormRequestElicitationRequest", "ElicitationFormRequestMode"),
    ("url", True): ("CreateUrlSessionElicitationRequest", "ElicitationUrlSessionMode"),
    ("url", False): ("CreateUrlRequestElicitationRequest", "ElicitationUrlRequestMode"),
}
"""The model of a question and that of its mode, by the mode's name and whether it belongs to a session."""


def build_client_router(client: Any, use_unstable_protocol: bool = False) -> MessageRouter:
    """Route the messages of an agent to this client's methods."""
    router = MessageRouter(use_unstable_protocol=use_unstable_protocol)
    router.route_calls(CLIENT_CALLS, client)
    router.add_route(
        Route(
            CLIENT_METHODS["elicitation_create"],
            _question_handler(client),
            "request",
            adapt_result=normalize_result,
            warn_unstable=not use_unstable_protocol,
        )
    )
    router.route_extensions(client)
    return router


def question_of(params: Any) -> BaseModel:
    """The model of a question in these params; raises ValidationError."""
    if not isinstance(params, dict):
        raise ValidationError("CreateElicitationRequest", [((), "must be an object")])
    models = MODES.get((params.get("mode"), params.get("sessionId") is not None))  # type: ignore[arg-type]
    model = model_named(models[0] if models is not None else "CreateOtherElicitationRequest")
    question: BaseModel = model.model_validate(params)
    return question


def mode_of(question: Any) -> Any:
    """The mode of a question, without what all questions have; raises RequestError for an unknown one."""
    for request, mode in MODES.values():
        if isinstance(question, model_named(request)):
            made = model_named(mode)
            return made(**{name: getattr(question, name) for name in made.model_fields if name in vars(question)})
    raise RequestError.invalid_params({"details": f"the mode {question.mode!r} is not supported"})


_mode_from_create_elicitation_request = mode_of  # pyright: ignore[reportUnusedVariable]  programs import it so


def _question_handler(client: Any) -> AsyncHandler | None:
    function, takes_params = resolved(client, "create_elicitation")
    if function is None:
        return None
    ask = function

    async def handle(params: Any) -> Any:
        question: Any = question_of(params)
        if takes_params:
            warn_of_old_style(client, "create_elicitation")
            return await ask(question)
        meta: dict[str, Any] = question.field_meta or {}
        return await ask(**{**meta, "message": question.message, "mode": mode_of(question)})

    return handle
