"""The trace context of a request, which is passed on to the requests that its handler makes.

Peers send it in `_meta` (W3C Trace Context: `traceparent`, `tracestate`, `baggage`), so that the spans of several
programs form one trace. It is passed on also when this program records no spans.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from accord._internal.tasks import is_awaitable
from accord.schema.base import Json

KEYS = ("traceparent", "tracestate", "baggage")

_current: ContextVar[dict[str, str] | None] = ContextVar("accord_trace", default=None)


def trace_in(meta: dict[str, Json]) -> dict[str, str]:
    """The trace context in the `_meta` of a message; empty if there is none."""
    return {key: value for key in KEYS if isinstance(value := meta.get(key), str)}


def carrying(trace: dict[str, str], handle: Callable[[], Any]) -> Any:
    """Call this with a trace context that is sent with the requests it makes, and with no others."""
    token = _current.set(trace)
    try:
        result = handle()
    finally:
        _current.reset(token)
    return _awaited_carrying(trace, result) if is_awaitable(result) else result


async def _awaited_carrying(trace: dict[str, str], result: Awaitable[Any]) -> Any:
    _current.set(trace)  # in the request's own task
    return await result


def traced(request: Any) -> Any:
    """A request of ours with the trace context of the request that is being handled."""
    if (trace := _current.get()) is None:
        return request
    return msgspec.structs.replace(request, meta={**trace, **(request.meta or {})})
