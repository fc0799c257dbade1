"""Closing a socket so that the client can read the last bytes.

Closing a socket with unread input resets the connection, and the client may then never see the response that was sent
to it. So we send our end first, and close a moment later.
"""

from __future__ import annotations

import asyncio

LINGERING = 1.0
"""Seconds that a client has to read the last bytes."""


def close_after_reading(transport: asyncio.Transport) -> None:
    """Close the transport once the client had time to read; TLS cannot send an end first, and is closed at once."""
    if not transport.can_write_eof():
        transport.close()
        return
    try:
        transport.write_eof()
    except OSError:  # the client has reset the connection, and we have not been told yet
        transport.abort()
        return
    asyncio.get_running_loop().call_later(LINGERING, transport.close)
