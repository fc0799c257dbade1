"""Agents behind a WebSocket, with the official SDK's names (extra `http`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loading import on_first_use

if TYPE_CHECKING:
    from accord.compat.acp.ws.client import create_websocket_stream as create_websocket_stream

__all__ = ["create_websocket_stream"]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, {"create_websocket_stream": "client"})
