"""Agents behind a URL, with the official SDK's names: a client's stream, and a server (extra `http`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.compat.acp.http.client import create_http_stream as create_http_stream
    from accord.compat.acp.http.server import AcpServer as AcpServer

__all__ = ["AcpServer", "create_http_stream"]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, {"AcpServer": "server", "create_http_stream": "client"})
