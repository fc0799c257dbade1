"""Messages that come over several streams, in the order in which the server sent them. PURE.

Our server numbers the messages of a connection from 1 on, without a gap, whichever stream they go to. So what came too
early is held until what is before it has come, and what came twice (a stream that was taken up again) is dropped.
"""

from __future__ import annotations


class InOrder:
    """Holds what is early.

    >>> order = InOrder()
    >>> order.arrived(2, b"second")
    []
    >>> order.arrived(1, b"first")
    [b'first', b'second']
    >>> order.arrived(1, b"first")
    []
    """

    def __init__(self) -> None:
        self.next = 1
        """The number that is awaited."""
        self.held_bytes = 0
        self._held: dict[int, bytes] = {}

    def arrived(self, number: int, message: bytes) -> list[bytes]:
        """What may be delivered now."""
        if number < self.next or number in self._held:
            return []
        if number > self.next:
            self._held[number] = message
            self.held_bytes += len(message)
            return []
        ready = [message]
        self.next += 1
        while (held := self._held.pop(self.next, None)) is not None:
            ready.append(held)
            self.held_bytes -= len(held)
            self.next += 1
        return ready

    @property
    def is_waiting(self) -> bool:
        """Whether something is held for a message that has not come."""
        return bool(self._held)
