"""`ServerMetrics`: what a server counts, and the names under which Prometheus and OpenTelemetry get it.

| Prometheus | OpenTelemetry | is |
|---|---|---|
| `accord_connections` | `acp.server.connections` | open connections |
| `accord_connections_total` | `acp.server.connections.opened` | connections since the start |
| `accord_sessions` | `acp.server.sessions` | open sessions |
| `accord_turns` | `acp.server.turns.running` | turns that are running |
| `accord_turns_total` | `acp.server.turns` | ended turns, by `outcome` |
| `accord_turn_seconds` | `acp.server.turn.duration` | how long turns took, by `outcome` |
| `accord_received_bytes_total` | `acp.server.received` | bytes of messages of clients |
| `accord_sent_bytes_total` | `acp.server.sent` | bytes of messages to clients |
| `accord_user_wait_seconds` | `acp.server.user_wait.duration` | how long questions to users were open, by `outcome` |
| `accord_refused_requests_total` | `acp.server.refused` | HTTP requests that were refused, by `status` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from accord.metrics.instruments import Counter, Gauge, Histogram, text_of

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

OUTCOMES = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error", "closed"})
"""The outcomes of turns that are named; an agent may say anything, and each label costs memory."""
OTHER = "other"

PATH = "/metrics"

AnInstrument = TypeVar("AnInstrument", Counter, Gauge, Histogram)


class ServerMetrics:
    """The figures of one server: connections, sessions, turns, bytes, waits, refused requests.

    `host` becomes a label of every figure, for a service of several hosts. `path` is where the server gives the figures
    as text; whoever may use the server may read them.
    """

    def __init__(self, *, host: str = "", path: str = PATH) -> None:
        if not path.startswith("/"):
            raise ValueError(f"path must begin with /, got {path!r}")
        self.path = path
        self._fixed = (("host", host),) if host else ()
        self._names: dict[str, str] = {}
        self._all: list[Counter | Histogram] = []
        self.connections = self._made(Gauge, "accord_connections", "acp.server.connections", "Open connections.")
        self.opened = self._made(
            Counter, "accord_connections_total", "acp.server.connections.opened", "Connections since the start."
        )
        self.sessions = self._made(Gauge, "accord_sessions", "acp.server.sessions", "Open sessions.")
        self.running = self._made(Gauge, "accord_turns", "acp.server.turns.running", "Turns that are running.")
        self.turns = self._made(Counter, "accord_turns_total", "acp.server.turns", "Turns that have ended.")
        self.turn_seconds = self._made(
            Histogram, "accord_turn_seconds", "acp.server.turn.duration", "How long turns took."
        )
        self.received = self._made(
            Counter, "accord_received_bytes_total", "acp.server.received", "Bytes of the messages of clients."
        )
        self.sent = self._made(
            Counter, "accord_sent_bytes_total", "acp.server.sent", "Bytes of the messages to clients."
        )
        self.user_wait = self._made(
            Histogram,
            "accord_user_wait_seconds",
            "acp.server.user_wait.duration",
            "How long permissions and forms waited for users.",
        )
        self.refused = self._made(
            Counter, "accord_refused_requests_total", "acp.server.refused", "HTTP requests that were refused."
        )

    def _made(self, kind: type[AnInstrument], name: str, otel: str, help_text: str) -> AnInstrument:
        made = kind(name, help_text, self._fixed)
        self._names[name] = otel
        self._all.append(made)
        return made

    def note_request(self, status: int) -> None:
        """Count an HTTP request, or an attempt at a WebSocket, if its status says that it was refused."""
        if status >= 400:
            self.refused.add(status=str(status))

    def end_turn(self, outcome: str, seconds: float) -> None:
        """Count a turn that ended."""
        named = outcome if outcome in OUTCOMES else OTHER
        self.running.add(-1)
        self.turns.add(outcome=named)
        self.turn_seconds.record(seconds, outcome=named)

    def text(self) -> str:
        """The figures in the text format of Prometheus."""
        return text_of(self._all)

    def export(self, meter: Meter | None = None) -> None:
        """Hand all changes from now on to OpenTelemetry, too (extra `otel`); by default to its global meter."""
        if meter is None:
            meter = _global_meter()
        for instrument in self._all:
            name, said = self._names[instrument.name], instrument.help_text
            unit = "s" if isinstance(instrument, Histogram) else "By" if "bytes" in instrument.name else "1"
            made: Any
            if isinstance(instrument, Histogram):
                made = meter.create_histogram(name, unit, said)
                instrument.mirror = made.record
            elif isinstance(instrument, Gauge):
                made = meter.create_up_down_counter(name, unit, said)
                instrument.mirror = made.add
            else:
                made = meter.create_counter(name, unit, said)
                instrument.mirror = made.add


def _global_meter() -> Meter:
    from accord.extras import missing_extra

    try:
        from opentelemetry import metrics
    except ImportError:
        raise missing_extra("otel", "metrics with OpenTelemetry") from None
    return metrics.get_meter("accord")
