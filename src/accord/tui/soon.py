"""`Soon`: a call that comes a little later, once, however often it is asked for.

Textual's `set_timer` is not used for this: where the machine pauses the process for longer than the timer's delay just
as it starts, it counts its only call as missed and never makes it, so that what waits for it stays as it is for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


class Soon:
    """A call that comes a little later, in the turn of a widget or the application."""

    def __init__(self, owner: MessagePump, call: Callable[[], object]) -> None:
        self._owner = owner
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the call is on its way."""
        return self._timer is not None

    def ask(self, seconds: float) -> None:
        """Have the call made in so many seconds; does nothing if it is already on its way."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._owner.call_later, self._run)

    def cancel(self) -> None:
        """Do not make the call, if it is on its way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        if self._timer is not None:  # it was not cancelled since
            self._timer = None
            self._call()
