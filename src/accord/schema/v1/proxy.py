"""Proxies between a client and an agent: proposed (proxy-chains)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Json, Notification, Request, unstable
from accord.schema.v1.initialize import InitializeRequest, InitializeResponse


@unstable
class InitializeProxyResponse(InitializeResponse):
    """Like the answer to `initialize`."""


class InitializeProxyRequest(  # pyright: ignore[reportGeneralTypeIssues]: the result differs by name only
    InitializeRequest, Request[InitializeProxyResponse], method="proxy/initialize", unstable=True
):
    """`initialize`, said to a component that is to be a proxy."""


ProxySuccessorResponse: TypeAlias = Annotated[Json, "ProxySuccessorResponse"]


class ProxySuccessorRequest(Request[ProxySuccessorResponse], method="proxy/successor", unstable=True):
    """A request to, or from, whoever comes next in the chain."""

    method: str
    params: Json = None


class ProxySuccessorNotification(Notification, method="proxy/successor", unstable=True):
    """A notification to, or from, whoever comes next in the chain."""

    method: str
    params: Json = None
