"""Every method of the protocol: the side that handles it, its params and result, and whether it is stable.

A message's class has its method and its result (`class PromptRequest(Request[PromptResponse], method=...)`). It does
not have the side that handles it: this table does.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any, Literal, TypeAlias

import msgspec

from accord.schema import legacy, v1
from accord.schema.base import Notification, Request, Side, result_type

Kind = Literal["request", "notification"]


class Method(msgspec.Struct, frozen=True):
    """One row: a method of one version of the protocol, as a request or as a notification."""

    name: str
    kind: Kind
    to: Side
    message: type[Request[Any] | Notification]
    params: Any
    """The type to decode params as: the message's class, or the union of its variants."""
    result: Any
    unstable: bool
    legacy: bool = False


Table: TypeAlias = dict[Side, tuple[str, ...]]


AGENT = (
    "InitializeRequest",
    "AuthenticateRequest",
    "LoginAuthRequest",
    "LogoutRequest",
    "LogoutAuthRequest",
    "AuthStatusRequest",
    "ListProvidersRequest",
    "SetProviderRequest",
    "DisableProviderRequest",
    "NewSessionRequest",
    "LoadSessionRequest",
    "ResumeSessionRequest",
    "ForkSessionRequest",
    "SessionOptionsRequest",
    "ListSessionsRequest",
    "CloseSessionRequest",
    "DeleteSessionRequest",
    "ArchiveSessionRequest",
    "UnarchiveSessionRequest",
    "SessionStatusRequest",
    "SetSessionTitleRequest",
    "SetSessionModeRequest",
    "SetSessionConfigOptionRequest",
    "PromptRequest",
    "CancelNotification",
    "CancelSessionNotification",
    "CancelToolCallRequest",
    "CancelTerminalRequest",
    "MessageMcpNotification",
)
CLIENT = (
    "SessionNotification",
    "UpdateSessionNotification",
    "RequestPermissionRequest",
    "ReadTextFileRequest",
    "WriteTextFileRequest",
    "CreateTerminalRequest",
    "TerminalOutputRequest",
    "WaitForTerminalExitRequest",
    "KillTerminalRequest",
    "ReleaseTerminalRequest",
    "CreateElicitationRequest",
    "CompleteElicitationNotification",
    "AuthStatusUpdateNotification",
    "MessageMcpRequest",
)
MESSAGES: Table = {
    "agent": AGENT,
    "client": CLIENT,
    "proxy": ("InitializeProxyRequest", "ProxySuccessorRequest", "ProxySuccessorNotification"),
    "protocol": ("CancelRequestNotification",),
}
"""The classes of messages by the side that handles them; a version has those that its module defines."""

LEGACY: Table = {
    "agent": (
        "SetSessionModelRequest",
        "StartNesRequest",
        "SuggestNesRequest",
        "CloseNesRequest",
        "AcceptNesNotification",
        "RejectNesNotification",
        "DidOpenDocumentNotification",
        "DidChangeDocumentNotification",
        "DidCloseDocumentNotification",
        "DidSaveDocumentNotification",
        "DidFocusDocumentNotification",
    ),
    "client": ("ConnectMcpRequest", "DisconnectMcpRequest"),
}
"""Those of version 1 that its published schema does not have."""


class Methods:
    """The methods of one version, by name and kind."""

    def __init__(self, rows: Iterator[Method]) -> None:
        self._rows = {(row.name, row.kind): row for row in rows}

    def __iter__(self) -> Iterator[Method]:
        return iter(self._rows.values())

    def request(self, name: str) -> Method | None:
        """Return the row of a request; None if there is no such method."""
        return self._rows.get((name, "request"))

    def notification(self, name: str) -> Method | None:
        """Return the row of a notification; None if there is no such method."""
        return self._rows.get((name, "notification"))


@functools.cache
def methods(version: int) -> Methods:
    """Return the table of one version of the protocol.

    >>> methods(1).request("session/prompt").to
    'agent'
    """
    if version == 1:
        return Methods(_rows(v1, MESSAGES, LEGACY))
    if version == 2:
        from accord.schema import v2  # a program that uses only version 1 never loads its types

        return Methods(_rows(v2, MESSAGES))
    raise LookupError(f"protocol version must be 1 or 2, got {version!r}")


HANDSHAKES = frozenset(("initialize", "proxy/initialize"))
"""The methods of the messages that are handshakes, for callers that must not load the table: a peer could make them."""


def is_handshake(method: str) -> bool:
    """Whether a request with this method, or this older name of one, is a handshake."""
    return legacy.RENAMED_METHODS.get(method, method) in HANDSHAKES


def message_of(method: str, kind: Kind) -> type[Request[Any] | Notification] | None:
    """Return the protocol's class for this method or its older name; None for an unknown method.

    Handlers without classes, such as those of a proxy, find the traits of their messages here. A method has the same
    traits in both versions.
    """
    name = legacy.RENAMED_METHODS.get(method, method)
    if name.startswith("_"):  # a custom method: the table is large, and need not be loaded for it
        return None
    table = methods(1)
    row = table.request(name) if kind == "request" else table.notification(name)
    return None if row is None else row.message


def is_spoken(message: type[Request[Any] | Notification], versions: Collection[int]) -> bool:
    """Whether a peer of one of these versions may send or receive this message; true for messages of your own.

    >>> is_spoken(v1.PromptRequest, (2,)), is_spoken(v1.ListProvidersRequest, (2,))
    (False, True)
    """
    return any(version in versions for version in versions_of(message))


_VERSIONS = {"accord.schema.v1": (1,), "accord.schema.v2": (2,), "accord.schema.v1_and_v2": (1, 2)}


def versions_of(message: type[Request[Any] | Notification]) -> tuple[int, ...]:
    """Return the versions that have this message, or the one that it derives from; both for a message of your own."""
    return next((_VERSIONS[cls.__module__] for cls in message.__mro__ if cls.__module__ in _VERSIONS), (1, 2))


def row_for(message: type[Request[Any] | Notification], to: Side, *, legacy: bool = False) -> Method:
    """Return the row for a message class, of the protocol or your own."""
    return Method(
        name=message.__method__,
        kind="request" if issubclass(message, Request) else "notification",
        to=to,
        message=message,
        params=_params_of(message),
        result=result_type(message) if issubclass(message, Request) else None,
        unstable=message.__unstable__,
        legacy=legacy,
    )


@functools.cache
def may_be_empty(result: Any) -> bool:
    """Whether a result of this type may be an object without members."""
    if not (isinstance(result, type) and issubclass(result, msgspec.Struct)):
        return False
    return not any(field.required for field in msgspec.structs.fields(result))


def _params_of(message: type[Request[Any] | Notification]) -> Any:
    # Only the class's own attribute: a variant inherits it, and is not a union.
    return vars(message).get("__params__") or message


def _rows(version: ModuleType, *tables: Table) -> Iterator[Method]:
    for table in tables:
        for side, names in table.items():
            for name in names:
                if message := getattr(version, name, None):
                    yield row_for(message, side, legacy=table is LEGACY)
