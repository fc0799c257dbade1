"""Proxies between a client and an agent: proposed (proxy-chains).

Differs from version 1 only as `initialize` does.
"""

from __future__ import annotations

from accord.schema.base import Request, unstable
from accord.schema.v2.initialize import InitializeRequest, InitializeResponse


@unstable
class InitializeProxyResponse(InitializeResponse):
    """The result of a proxy's initialization, like that of `initialize`."""


class InitializeProxyRequest(  # pyright: ignore[reportGeneralTypeIssues]: the result differs by name only
    InitializeRequest, Request[InitializeProxyResponse], method="proxy/initialize", unstable=True
):
    """Initialize a component as a proxy, like `initialize`."""
