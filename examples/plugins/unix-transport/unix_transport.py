"""Agents behind Unix sockets: `accord run "Hello" -- unix:///run/agent.sock`.

systemd or inetd can start an agent for each connection, with the socket as its standard input and output: an agent that
speaks over stdio needs no change.

    [Socket]                           [Service]
    ListenStream=/run/agent.sock       ExecStart=/usr/bin/my-agent --acp
    Accept=yes                         StandardInput=socket
"""

from __future__ import annotations

import os
import socket
from typing import Any
from urllib.parse import unquote, urlsplit

import accord
from accord.transports import Receiver, Transport


class UnixTarget(accord.Target):
    """The plug-in that the entry point names: it is called with the URL and all options of `accord.connect`."""

    def __init__(self, url: str, **_: Any) -> None:
        parts = urlsplit(url)
        if parts.netloc or not parts.path.strip("/"):
            raise accord.AccordError(f"unix:// takes an absolute path, such as unix:///run/agent.sock, got {url!r}")
        self.name = url
        self._path = unquote(parts.path)

    def dial(self) -> Transport:
        return UnixTransport(self._path)


class UnixTransport(accord.StdioTransport):
    """Frames over a socket: the file that is read from is also the one that is written to."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._path = path
        super().__init__(self._socket.fileno(), self._socket.fileno())
        self.name = f"unix {path}"

    async def start(self, receiver: Receiver) -> None:
        try:
            self._socket.connect(self._path)  # a local socket connects, or refuses, at once
        except OSError as error:
            self._socket.close()
            raise accord.ConnectionClosed("broken", f"{self._path}: {os.strerror(error.errno or 0)}") from error
        self._socket.detach()  # from now on the descriptor belongs to the transport
        await super().start(receiver)
