"""A side of a connection as an object: each call of the other side is a method, made from the rows of `calls`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self, TypeVar

from accord.compat.acp.connection import Connection
from accord.compat.acp.router import MessageRouter, arguments
from accord.compat.acp.utils import ensure_dict, to_camel_case
from accord.compat.calls import CallRow
from accord.compat.message_transport import Messages
from accord.compat.models.building import model_named
from accord.engine.receiving import Role
from accord.transports.base import Transport

SideT = TypeVar("SideT", bound="type[Side]")


class Side:
    """What both sides share: a connection, extensions and the end."""

    def __init__(
        self, router: MessageRouter, writer: Any, reader: Any, *, role: Role, listening: bool = True, **options: Any
    ) -> None:
        self._conn = Connection(router, *_streams(writer, reader), role=role, listening=listening, **options)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request of an extension: its method's name gets an underscore."""
        result: dict[str, Any] = await self._conn.send_request(f"_{method}", params)
        return result

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification of an extension: its method's name gets an underscore."""
        await self._conn.send_notification(f"_{method}", params)

    async def close(self) -> None:
        """End the connection."""
        await self._conn.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def on_connect(self, conn: Any) -> None:
        """Nothing: a connection has no use for another one."""

    async def call(self, row: CallRow, given: dict[str, Any]) -> Any:
        """Send the message of this row with these fields; further ones are extensions, under `_meta`."""
        model = model_named(row.params[1 if len(row.params) > 1 and isinstance(given.get("value"), bool) else 0])
        fields = model.model_fields
        params = model(**{name: value for name, value in given.items() if name in fields and value is not None})
        others = {name: value for name, value in given.items() if name not in fields}
        if others:
            params.field_meta = others
        if row.result is None:
            await self._conn.send_notification(row.method, params)
            return None
        result = await self._conn.send_request(row.method, params)
        return model_named(row.result).model_validate(ensure_dict(result) if row.may_be_none else result)


def connected(to_peer: Any, side: Any) -> Any:
    """The object that handles messages: given, or made for this connection by a function."""
    return to_peer(side) if callable(to_peer) else to_peer


def told(peer: Any, side: Any) -> None:
    """Give the connection to an object that wants it."""
    on_connect = getattr(peer, "on_connect", None)
    if on_connect is not None:
        on_connect(side)


def with_calls(rows: Iterable[CallRow], declared: type) -> Callable[[SideT], SideT]:
    """Give a class a method for each of these rows, with the signature that `declared` has for it."""

    def add(cls: SideT) -> SideT:
        for row in rows:
            written = cls.__dict__.get(row.attribute)
            method = written or _method(row, getattr(declared, row.attribute, None))
            setattr(cls, row.attribute, _with_message(row, method))
            if "_" in row.attribute:
                setattr(cls, to_camel_case(row.attribute), _with_message(row, method, always=True))
        return cls

    return add


def _method(row: CallRow, declared: Callable[..., Any] | None) -> Callable[..., Awaitable[Any]]:
    signature = None if declared is None else inspect.signature(declared)

    async def method(self: Side, *args: Any, **kwargs: Any) -> Any:
        if args and signature is not None:
            bound = signature.bind(self, *args, **kwargs)
            given = {name: value for name, value in bound.arguments.items() if name not in ("self", "kwargs")}
            given |= bound.arguments.get("kwargs", {})
        else:
            given = kwargs
        return await self.call(row, given)

    if declared is not None:
        method = functools.wraps(declared)(method)
    method.__name__ = row.attribute
    return method


def _with_message(row: CallRow, method: Callable[..., Any], *, always: bool = False) -> Callable[..., Any]:
    """The method, which also takes its message as one argument, as in the SDK's first releases."""
    if not always and "_" in row.attribute:
        return method

    @functools.wraps(method)
    def called(self: Side, *args: Any, **kwargs: Any) -> Any:
        message = next(iter((*args, *kwargs.values())), None) if len(args) + len(kwargs) == 1 else None
        if not isinstance(message, tuple(model_named(name) for name in row.params)):
            return method(self, *args, **kwargs)
        names = " | ".join(sorted(row.params))
        warnings.warn(
            f"Calling {row.attribute} with {names} parameter is deprecated: pass the fields as arguments",
            DeprecationWarning,
            stacklevel=2,
        )
        return method(self, **arguments(message))

    return called


def _streams(writer: Any, reader: Any) -> tuple[Any, Any]:
    if reader is None and isinstance(writer, (Transport, Messages)):
        return writer, None
    if isinstance(writer, asyncio.StreamWriter) and isinstance(reader, asyncio.StreamReader):
        return writer, reader
    raise TypeError(
        "a connection needs an asyncio.StreamWriter and an asyncio.StreamReader, or one transport of messages; "
        f"got {type(writer).__name__} and {type(reader).__name__}"
    )
