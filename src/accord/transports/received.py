"""What a socket brings, without a quarter of a MiB allocated and given back for each read.

asyncio's own protocols make room for 256 KiB before every read, however little comes, which takes longer than the rest
of a small message. Here one buffer serves every socket, as each event loop fills it and hands it on in one go.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

_room = memoryview(bytearray(256 * 1024))


class Received(asyncio.BufferedProtocol):
    """A protocol that takes bytes as `asyncio.Protocol` does."""

    @abstractmethod
    def data_received(self, data: bytes) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return _room

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_room[:nbytes]))
