"""`MessageRouter`: calls the methods of an agent's or a client's object, with the fields of a message as arguments."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from accord.compat.acp.exceptions import RequestError
from accord.compat.acp.utils import to_camel_case
from accord.compat.calls import CallRow
from accord.compat.models.building import model_named

__all__ = ["MessageRouter", "Route"]

AsyncHandler = Callable[[Any], Awaitable[Any]]
ExtensionHandler = Callable[[str, dict[str, Any]], Awaitable[Any]]
ExtensionHandlerT = TypeVar("ExtensionHandlerT", bound=ExtensionHandler)


@dataclass(slots=True)
class Route:
    """The way of one method to its function."""

    method: str
    func: AsyncHandler | None
    kind: Literal["request", "notification"]
    optional: bool = False
    default_result: Any = None
    adapt_result: Callable[[Any], Any] | None = None
    warn_unstable: bool = False

    async def handle(self, params: Any) -> Any:
        """Call the function; raises RequestError if there is none."""
        if self.func is None:
            if self.optional:
                return self.default_result
            raise RequestError.method_not_found(self.method)
        if self.warn_unstable:
            warnings.warn(
                f"{self.method} is part of the unstable protocol: pass use_unstable_protocol=True to handle it",
                UserWarning,
                stacklevel=3,
            )
            raise RequestError.method_not_found(self.method)
        result = await self.func(params)
        return self.adapt_result(result) if self.adapt_result is not None and self.kind == "request" else result


class MessageRouter:
    """Routes by method; called with a message, as a `Connection` calls its handler."""

    def __init__(self, use_unstable_protocol: bool = False) -> None:
        self._routes: dict[tuple[str, str], Route] = {}
        self._extensions: dict[str, ExtensionHandler] = {}
        self._use_unstable_protocol = use_unstable_protocol

    def add_route(self, route: Route) -> None:
        """Add a route; it replaces an earlier one of its method."""
        self._routes[route.kind, route.method] = route

    def route_request(
        self,
        method: str,
        model: Any,
        obj: Any,
        attr: str,
        optional: bool = False,
        default_result: Any = None,
        adapt_result: Callable[[Any], Any] | None = None,
        unstable: bool = False,
    ) -> Route:
        """Call `obj.attr` with the fields of each request of this method."""
        hidden = unstable and not self._use_unstable_protocol
        handler = handler_of(obj, attr, lambda _: model)
        route = Route(method, handler, "request", optional, default_result, adapt_result, hidden)
        self.add_route(route)
        return route

    def route_notification(
        self, method: str, model: Any, obj: Any, attr: str, optional: bool = False, unstable: bool = False
    ) -> Route:
        """Call `obj.attr` with the fields of each notification of this method."""
        hidden = unstable and not self._use_unstable_protocol
        route = Route(method, handler_of(obj, attr, lambda _: model), "notification", optional, warn_unstable=hidden)
        self.add_route(route)
        return route

    def route_calls(self, calls: Iterable[CallRow], obj: Any) -> None:
        """Call the methods of `obj` that these rows name."""
        for row in calls:
            hidden = row.unstable and not self._use_unstable_protocol
            handler = handler_of(obj, row.attribute, choice_of(row))
            adapt = _filled if row.may_be_none else None
            kind: Any = "notification" if row.result is None else "request"
            self.add_route(Route(row.method, handler, kind, row.is_optional, row.default, adapt, hidden))

    def route_extensions(self, obj: Any) -> None:
        """Call `obj.ext_method` and `obj.ext_notification` for methods whose names begin with an underscore."""

        @self.handle_extension_request
        async def call(name: str, payload: dict[str, Any]) -> Any:
            handler, _ = resolved(obj, "ext_method")
            if handler is None:
                raise RequestError.method_not_found(f"_{name}")
            return await handler(name, payload)

        @self.handle_extension_notification
        async def tell(name: str, payload: dict[str, Any]) -> None:
            handler, _ = resolved(obj, "ext_notification")
            if handler is not None:
                await handler(name, payload)

    def handle_extension_request(self, handler: ExtensionHandlerT) -> ExtensionHandlerT:
        """Handle requests whose methods begin with an underscore; it gets the name without it."""
        self._extensions["request"] = handler
        return handler

    def handle_extension_notification(self, handler: ExtensionHandlerT) -> ExtensionHandlerT:
        """Handle notifications whose methods begin with an underscore; it gets the name without it."""
        self._extensions["notification"] = handler
        return handler

    async def __call__(self, method: str, params: Any | None, is_notification: bool) -> Any:
        """Handle a message: the result of a request, None for a notification."""
        kind = "notification" if is_notification else "request"
        if method.startswith("_"):
            extension = self._extensions.get(kind)
            if extension is None:
                raise RequestError.method_not_found(method)
            return await extension(method[1:], cast("dict[str, Any]", params) if isinstance(params, dict) else {})
        route = self._routes.get((kind, method))
        if route is None:
            raise RequestError.method_not_found(method)
        return await route.handle(params)


def choice_of(row: CallRow) -> Callable[[Any], Any]:
    """A function that gives the model of these params."""
    models = [model_named(name) for name in row.params]
    if len(models) == 1:
        return lambda _: models[0]

    def choose(params: Any) -> Any:
        is_boolean = isinstance(params, dict) and cast("Any", params).get("type") == "boolean"
        return models[1 if is_boolean else 0]

    return choose


def handler_of(obj: Any, attr: str, choose: Callable[[Any], Any]) -> AsyncHandler | None:
    """A function that calls `obj.attr` with the fields of a message; None if there is no such method.

    A method of the SDK's first releases has a name in camelCase, and takes the message as `params`.
    """
    found, takes_params = resolved(obj, attr)
    if found is None:
        return None
    function = found

    async def handle(params: Any) -> Any:
        message = choose(params).model_validate(params)
        if takes_params:
            warn_of_old_style(obj, attr)
            return await function(message)
        return await function(**arguments(message))

    return handle


def arguments(message: Any) -> dict[str, Any]:
    """The fields of a message as arguments; extensions of `_meta` that no field has are arguments, too."""
    cls = cast("Any", type(message))
    fields: dict[str, Any] = cls.model_fields
    given: dict[str, Any] = {name: getattr(message, name) for name in fields if name not in ("field_meta", "type")}
    meta: dict[str, Any] | None = message.field_meta
    # A key of the peer's `_meta` that is the name of a field does not replace the field.
    return {**meta, **given} if meta else given


def resolved(obj: Any, attr: str) -> tuple[Callable[..., Any] | None, bool]:
    """The method of this name, and whether it takes its message as one argument."""
    function = getattr(obj, attr, None)
    if function is None and "_" in attr:
        function = getattr(obj, to_camel_case(attr), None)
        return (function, attr not in ("ext_method", "ext_notification")) if callable(function) else (None, False)
    if not callable(function):
        return None, False
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    return function, parameters == ["params"]


def warn_of_old_style(obj: Any, attr: str) -> None:
    """Warn that a method has the form of the SDK's first releases."""
    name = attr if callable(getattr(obj, attr, None)) else to_camel_case(attr)
    warnings.warn(
        f"The old style method {type(obj).__name__}.{name} is deprecated: use snake_case and the fields as arguments",
        DeprecationWarning,
        stacklevel=3,
    )


def _filled(result: Any) -> Any:
    return {} if result is None else result
