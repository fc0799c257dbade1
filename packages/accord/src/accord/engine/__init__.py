"""Messages between two peers: order, cancellation, backpressure and the end of a connection.

`accord.Peer` is for typed messages and handlers. A program that passes messages on, such as the adapter for the
official SDK, makes an `accord.Connection` with `Routes`: each method has a `Route`, which defines how its params are
read, what handles it, and in which order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.engine.incoming_requests import IncomingRequest as IncomingRequest
    from accord.engine.routes import Route as Route, Routes as Routes, plain_lane as plain_lane

_HOMES = {
    "incoming_requests": "IncomingRequest",
    "routes": "Route Routes plain_lane",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
