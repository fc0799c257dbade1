"""Each request as an OpenTelemetry span, with the extra `otel`.

    Peer(transport, handlers, role="client", spans=Spans())

The trace context travels in `_meta` (`traceparent`, `tracestate`), so that the spans of both sides are linked. Without
this extra, a peer's context in `_meta` is still passed on to the requests made while handling its request.

A failed request is an event `exception` of its span. Spans are stored and read elsewhere, so the text of an error,
which may quote the peer, is cut and its URLs are masked, as in the other records.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol

import msgspec

from accord.installation import missing_extra
from accord.printable import CUT
from accord.redaction import mask_urls
from accord.trace import genai

LONGEST_TEXT = 1_000
"""Characters of an error's text that a span records."""
LONGEST_STACK = 16_000
"""Characters of an error's stack that a span records: the end, where it was raised."""


class SpanEnd(Protocol):
    """Ends the span of a request with its answer or its error, and with the session's usage if it is known."""

    def __call__(self, result: Any, usage: Any = None) -> None: ...


class Spans:
    """Makes a span for each request, sent and received."""

    def __init__(self, tracer: Any = None) -> None:
        try:
            from opentelemetry import propagate, trace
        except ImportError:
            raise missing_extra("otel", "tracing with OpenTelemetry") from None
        self._trace = trace
        self._propagate = propagate
        self._tracer = tracer or trace.get_tracer("accord")

    @contextlib.contextmanager
    def asking(self, request: Any, role: str) -> Generator[tuple[Any, Callable[[Any], None]]]:
        """Open a span around a request that we send.

        Yields the request with the span's context in its `_meta`, and a function to call with the answer.
        """
        attributes = _attributes(request, role)
        with self._current(request.__method__, kind=self._trace.SpanKind.CLIENT, attributes=attributes) as span:
            yield self._carrying(request, None), lambda answer: span.set_attributes(_attributes_of_answer(answer))

    def sending(self, request: Any, role: str) -> tuple[Any, SpanEnd]:
        """Begin a span for a request whose answer is handled later; returns the request, and a function that ends the
        span.

        The function takes the answer or the error, and the last `UsageUpdate` of the session, if there is one.
        """
        span = self._tracer.start_span(
            request.__method__, kind=self._trace.SpanKind.CLIENT, attributes=_attributes(request, role)
        )

        def end(result: Any, usage: Any = None) -> None:
            if isinstance(result, BaseException):
                self._record(span, result)
            else:
                span.set_attributes(_attributes_of_answer(result))
            span.set_attributes(_attributes_of_usage(usage))
            span.end()

        return self._carrying(request, self._trace.set_span_in_context(span)), end

    def _carrying(self, request: Any, context: Any) -> Any:
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier, context=context)
        return msgspec.structs.replace(request, meta={**carrier, **(request.meta or {})}) if carrier else request

    def answering(self, request: Any, result: Any, role: str) -> Any:
        """Open a span around the handling of their request, if it takes time at all."""
        if not hasattr(result, "__await__"):
            return result
        return self._answering(request, result, role)

    async def _answering(self, request: Any, result: Awaitable[Any], role: str) -> Any:
        meta: dict[str, Any] = request.meta or {}
        carrier = {key: value for key, value in meta.items() if isinstance(value, str)}
        with self._current(
            request.__method__,
            context=self._propagate.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
            attributes=_attributes(request, role),
        ) as span:
            answer = await result
            span.set_attributes(_attributes_of_answer(answer))
            return answer

    @contextlib.contextmanager
    def _current(self, name: str, **described: Any) -> Generator[Any]:
        """Open a span around this block; it records an error of the block."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False, **described
        ) as span:
            try:
                yield span
            except Exception as error:
                self._record(span, error)
                raise

    def _record(self, span: Any, error: BaseException) -> None:
        """The same attributes that OpenTelemetry records, without secrets and of a bounded size."""
        kind, text = type(error), _shown(error)
        span.add_event(
            "exception",
            {
                "exception.type": f"{kind.__module__}.{kind.__qualname__}",
                "exception.message": text,
                # Only frames: the texts of the causes of this error would need the same treatment.
                "exception.stacktrace": "".join(traceback.format_tb(error.__traceback__))[-LONGEST_STACK:],
            },
        )
        span.set_status(self._trace.StatusCode.ERROR, f"{kind.__name__}: {text}")


def _shown(error: BaseException) -> str:
    text = str(error)
    # Masked before the cut, which could split a URL; a margin first, because a peer may send megabytes.
    shown = mask_urls(text[: 16 * LONGEST_TEXT])
    return shown if len(shown) <= LONGEST_TEXT and len(text) <= 16 * LONGEST_TEXT else shown[: LONGEST_TEXT - 1] + CUT


def _attributes(request: Any, role: str) -> dict[str, str]:
    attributes = {"rpc.system": "jsonrpc", "rpc.method": request.__method__, "accord.role": role}
    if (session_id := getattr(request, "session_id", None)) is not None:
        attributes |= {"accord.session": session_id, genai.CONVERSATION: session_id}
    if request.__method__ == "session/prompt":
        attributes[genai.OPERATION] = genai.INVOKE_AGENT
    return attributes


def _attributes_of_answer(answer: Any) -> dict[str, Any]:
    """Return how a turn ended and what it used, as far as the answer reports it."""
    reason, usage = getattr(answer, "stop_reason", None), getattr(answer, "usage", None)
    known = {genai.STOP_REASON: reason, genai.FINISH_REASONS: [reason] if isinstance(reason, str) else None}
    known |= {name: getattr(usage, member, None) for member, name in genai.USAGE.items()}
    return {name: value for name, value in known.items() if isinstance(value, str | int | list)}


def _attributes_of_usage(usage: Any) -> dict[str, Any]:
    """Return the total usage of the session: its context, and its cost."""
    cost = getattr(usage, "cost", None)
    known = {
        genai.CONTEXT_USED: getattr(usage, "used", None),
        genai.CONTEXT_SIZE: getattr(usage, "size", None),
        genai.COST: getattr(cost, "amount", None),
        genai.CURRENCY: getattr(cost, "currency", None),
    }
    return {name: value for name, value in known.items() if isinstance(value, str | int | float)}
