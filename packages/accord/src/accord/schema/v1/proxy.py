"""Proxies between a client and an agent: proposed (proxy-chains)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Json, Notification, Request, unstable
from accord.schema.v1.initialize import InitializeRequest, InitializeResponse


@unstable
class InitializeProxyResponse(InitializeResponse):
    """The result of a proxy's initialization, like that of `initialize`."""


class InitializeProxyRequest(  # pyright: ignore[reportGeneralTypeIssues]: the result differs by name only
    InitializeRequest, Request[InitializeProxyResponse], method="proxy/initialize", unstable=True
):
    """Initialize a component as a proxy, like `initialize`."""


ProxySuccessorResponse: TypeAlias = Annotated[Json, "ProxySuccessorResponse"]


class ProxySuccessorRequest(Request[ProxySuccessorResponse], method="proxy/successor", unstable=True):
    """A request to or from the next component in the chain."""

    method: str
    params: Json = None


class ProxySuccessorNotification(Notification, method="proxy/successor", unstable=True):
    """A notification to or from the next component in the chain."""

    method: str
    params: Json = None
