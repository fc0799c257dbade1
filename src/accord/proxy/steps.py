"""Calls the steps that a message goes through.

A step that returns a message passes it to the next one, and the last one's is sent on. Any other value ends the way:
for a notification, None drops it; for a request, the value is the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from accord.proxy.hop import Hop
from accord.proxy.registered import Entry, Step
from accord.schema.base import Notification, Request
from accord.tasks import is_awaitable


def run_steps(entry: Entry, message: Any, hop: Hop[Any]) -> Any:
    """Call the steps of an entry; returns what the last one returned, or an awaitable of it."""
    steps = entry.steps
    value: Any = message
    for at, step in enumerate(steps):
        value = step(value, hop)
        if is_awaitable(value):
            return _run_on(steps[at + 1 :], value, hop)
        if not is_message(value):
            return value
    return value


async def _run_on(steps: list[Step], awaited: Awaitable[Any], hop: Hop[Any]) -> Any:
    value = await awaited
    for step in steps:
        if not is_message(value):
            return value
        value = step(value, hop)
        if is_awaitable(value):
            value = await value
    return value


def is_message(value: Any) -> bool:
    """Whether a step has returned a message, which goes on."""
    return isinstance(value, Request | Notification)
