"""Models as params and results of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = [
    "ensure_dict",
    "normalize_result",
    "notify_model",
    "param_model",
    "param_models",
    "request_model",
    "request_model_from_dict",
    "request_optional_model",
    "serialize_params",
    "to_camel_case",
    "validate_model",
    "validate_model_from_dict",
    "validate_optional_model",
]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def serialize_params(params: Any) -> dict[str, Any]:
    """A model as the plain values that are sent."""
    plain: dict[str, Any] = params.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return plain


def normalize_result(payload: Any) -> Any:
    """A result as plain values; an empty object for None."""
    if payload is None:
        return {}
    return serialize_params(payload) if hasattr(payload, "model_dump") else payload


def ensure_dict(payload: Any) -> dict[str, Any]:
    """The payload if it is a dictionary, else an empty one."""
    return cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}


def validate_model(payload: Any, model_type: Any) -> Any:
    """The model of this payload."""
    return model_type.model_validate(payload)


def validate_model_from_dict(payload: Any, model_type: Any) -> Any:
    """The model of this payload; one without fields if it is not a dictionary."""
    return model_type.model_validate(ensure_dict(payload))


def validate_optional_model(payload: Any, model_type: Any) -> Any:
    """The model of this payload; None if it is not a dictionary."""
    return model_type.model_validate(payload) if isinstance(payload, dict) else None


async def request_model(conn: Any, method: str, params: Any, response_model: Any) -> Any:
    """Send a request; its result as this model."""
    return validate_model(await conn.send_request(method, params), response_model)


async def request_model_from_dict(conn: Any, method: str, params: Any, response_model: Any) -> Any:
    """Send a request; its result as this model, without fields if the result is not an object."""
    return validate_model_from_dict(await conn.send_request(method, params), response_model)


async def request_optional_model(conn: Any, method: str, params: Any, response_model: Any) -> Any:
    """Send a request; its result as this model, None if the result is not an object."""
    return validate_optional_model(await conn.send_request(method, params), response_model)


async def notify_model(conn: Any, method: str, params: Any) -> None:
    """Send a notification."""
    await conn.send_notification(method, params)


def param_model(param_cls: Any) -> Callable[[FunctionT], FunctionT]:
    """Mark a method with the model of its arguments."""
    return param_models(param_cls)


def param_models(*param_cls: Any) -> Callable[[FunctionT], FunctionT]:
    """Mark a method with the models of its arguments, of which a call has one."""
    if not param_cls:
        raise ValueError("param_models needs at least one model, got none")

    def mark(function: FunctionT) -> FunctionT:
        function.__param_models__ = param_cls  # type: ignore[attr-defined]
        return function

    return mark


def to_camel_case(snake_str: str) -> str:
    """A name in snake_case as camelCase."""
    first, *rest = snake_str.split("_")
    return first + "".join(word.title() for word in rest)
