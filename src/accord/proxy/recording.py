"""Records what a switchboard passes on: one trace for the whole chain, without envelopes.

Each message is one event, with the components that it came from and went to. `out` is towards the agent, `in` towards
the client. So the trace reads as if the components were connected with each other directly.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from accord.trace import Observer, TraceEvent

if TYPE_CHECKING:
    from accord.proxy.link import Port


class Recorder:
    """Shows each message of a chain to an observer, such as a `TraceFile`."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def record(self, source: Port, to: Port, frame: bytes) -> None:
        """A message came in by `source` and goes out by `to`; its frame is shown without an envelope."""
        direction = source.direction
        hop = (source.link.name, to.link.name)
        self._observer(TraceEvent(time.monotonic(), direction, frame, hop=hop))
