"""`Calls`: the calls of the user's functions that an event loop has made in threads, and which thread makes which.

A call about a session goes to a thread that waits for this session: the one that iterates over a reply, or waits for
its outcome. While none waits, the call is kept for `PATIENCE` seconds, because a program that iterates does not wait at
every moment. Then it gets a thread of its own, so that an agent is answered even if the program does something else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from accord.sync.waiting import Call, Waiter

PATIENCE = 0.5
"""Seconds that a call is kept for a thread that waits for its session."""

log = logging.getLogger("accord")


class Calls:
    """The waiting threads of one event loop, and the calls that none of them has taken. All in the event loop."""

    def __init__(self, home: object) -> None:
        self._home = home
        self._waiters: list[Waiter] = []
        self._kept: list[Call] = []
        self._threads: list[threading.Thread] = []

    def begin(self, waiter: Waiter) -> None:
        """A thread waits from now on."""
        self._waiters.append(waiter)
        for call in [it for it in self._kept if _fits(it, waiter)]:
            self._kept.remove(call)
            waiter.give(call)

    def end(self, waiter: Waiter) -> None:
        """The thread does not wait any more."""
        self._waiters.remove(waiter)

    async def make(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Have a thread call this function; returns what it returned, or raises its error."""
        call = Call(function, arguments, _session_of(arguments))
        waiter = next((it for it in self._waiters if _fits(call, it)), None)
        if waiter is not None:
            waiter.give(call)
            return await self._answered(call)
        self._kept.append(call)
        late = asyncio.get_running_loop().call_later(PATIENCE, self._start_thread, call)
        try:
            return await self._answered(call)
        finally:
            late.cancel()
            if call in self._kept:
                self._kept.remove(call)

    async def _answered(self, call: Call) -> Any:
        try:
            return await call.answer
        finally:
            call.claim()  # after a cancellation, no thread may make it any more

    def _start_thread(self, call: Call) -> None:
        if call in self._kept:
            self._kept.remove(call)
            self._threads = [it for it in self._threads if it.is_alive()]
            # A daemon, because a function that never returns must not keep the program from ending.
            thread = threading.Thread(target=self._make_alone, args=(call,), name=f"accord {call.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _make_alone(self, call: Call) -> None:
        if call.claim():
            try:
                call.make(self._home)
            except BaseException:  # KeyboardInterrupt and SystemExit end the main thread only
                log.exception("%s failed", call.name)

    def join(self, seconds: float) -> None:
        """Wait for the threads that were started for single calls; not in the event loop."""
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                log.warning("%s still runs after the end of its connection", thread.name)


def _fits(call: Call, waiter: Waiter) -> bool:
    return call.session is None or call.session == waiter.session


def _session_of(arguments: tuple[Any, ...]) -> str | None:
    """The id of the session that a message or a question names."""
    about = arguments[0] if arguments else None
    session = getattr(about, "session", None)
    if session is None:
        return getattr(about, "session_id", None)
    # The thread that waits for a session answers the questions of its subagents too.
    return getattr(session, "main_id", None) or getattr(session, "id", None)
