"""Proxies between a client and an agent: proposed (proxy-chains).

Differs from version 1 only as `initialize` does.
"""

from __future__ import annotations

from accord.schema.base import Request, unstable
from accord.schema.v2.initialize import InitializeRequest, InitializeResponse


@unstable
class InitializeProxyResponse(InitializeResponse):
    """Like the answer to `initialize`."""


class InitializeProxyRequest(  # pyright: ignore[reportGeneralTypeIssues]: the result differs by name only
    InitializeRequest, Request[InitializeProxyResponse], method="proxy/initialize", unstable=True
):
    """`initialize`, said to a component that is to be a proxy."""
