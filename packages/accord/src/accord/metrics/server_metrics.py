"""`ServerMetrics`: a server's counters, and their names for Prometheus and OpenTelemetry.

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

`Counter`, `Gauge` and `Histogram` hold the numbers. Each may have a *mirror*, which also gets each change: an
instrument of OpenTelemetry. `MeasuredConversation` counts events in the messages of one connection. Most messages are
updates, which are recognised by their first bytes and not parsed. In version 2 a turn ends with a `state_update`, so an
update that has these letters is parsed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from accord.installation import missing_extra
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame, parse
from accord.trace import IN, TraceEvent
from accord.trace.meaning import body_of, object_in

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

Labels: TypeAlias = tuple[tuple[str, str], ...]
Mirror: TypeAlias = Callable[[float, Mapping[str, str]], object]

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""The upper bounds of a histogram's buckets: a turn takes seconds to minutes."""


class Instrument(ABC):
    """A figure for each set of labels."""

    kind: str
    """Its type in the words of Prometheus."""
    creator: str
    """The method of OpenTelemetry's meter that makes such an instrument."""

    def __init__(self, name: str, help_text: str, fixed: Labels = ()) -> None:
        self.name = name
        self.help_text = help_text
        self.mirror: Mirror | None = None
        self._fixed = fixed
        self._values: dict[Labels, float] = {}

    @abstractmethod
    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        """The lines of the text format: name, labels, number."""


class Counter(Instrument):
    """A number that only grows, for each set of labels."""

    kind = "counter"
    creator = "create_counter"

    def add(self, number: float = 1, **labels: str) -> None:
        """Add to the number with these labels."""
        key = (*self._fixed, *labels.items())
        self._values[key] = self._values.get(key, 0) + number
        if self.mirror is not None:
            self.mirror(number, dict(key))

    def value(self, **labels: str) -> float:
        """The number with these labels."""
        return self._values.get((*self._fixed, *labels.items()), 0)

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        for labels, value in self._values.items() or [(self._fixed, 0.0)]:
            yield self.name, labels, value


class Gauge(Counter):
    """A number that grows and shrinks."""

    kind = "gauge"
    creator = "create_up_down_counter"


class Histogram(Instrument):
    """How many times in seconds were below each bound, and their sum."""

    kind = "histogram"
    creator = "create_histogram"

    def __init__(self, name: str, help_text: str, fixed: Labels = ()) -> None:
        super().__init__(name, help_text, fixed)
        self._parts: dict[Labels, list[int]] = {}

    def record(self, seconds: float, **labels: str) -> None:
        """Count this time."""
        key = (*self._fixed, *labels.items())
        parts = self._parts.setdefault(key, [0] * (len(SECONDS) + 1))
        parts[bisect_left(SECONDS, seconds)] += 1
        self._values[key] = self._values.get(key, 0.0) + seconds
        if self.mirror is not None:
            self.mirror(seconds, dict(key))

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        for labels, parts in self._parts.items():
            below = 0
            for bound, count in zip(map(str, (*SECONDS, "+Inf")), parts, strict=True):
                below += count
                yield f"{self.name}_bucket", (*labels, ("le", bound)), below
            yield f"{self.name}_sum", labels, self._values[labels]
            yield f"{self.name}_count", labels, below


def text_of(instruments: list[Instrument]) -> str:
    """Instruments in the text format of Prometheus, version 0.0.4.

    >>> turns = Counter("accord_turns_total", "Turns that ended.", (("host", "a"),))
    >>> turns.add(outcome="end_turn")
    >>> print(text_of([turns]), end="")
    # HELP accord_turns_total Turns that ended.
    # TYPE accord_turns_total counter
    accord_turns_total{host="a",outcome="end_turn"} 1
    """
    lines: list[str] = []
    for instrument in instruments:
        lines += [
            f"# HELP {instrument.name} {instrument.help_text}",
            f"# TYPE {instrument.name} {instrument.kind}",
            *(f"{name}{_labels(labels)} {value:.10g}" for name, labels, value in instrument.samples()),
        ]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


ABOUT = ("# HELP ", "# TYPE ")


def merged(texts: Iterable[str]) -> str:
    """Several texts in Prometheus' format as one; their labels distinguish the samples.

    >>> one, two = ('# TYPE a gauge\\na{host="%s"} 1\\n' % host for host in "xy")
    >>> print(merged([one, two]), end="")
    # TYPE a gauge
    a{host="x"} 1
    a{host="y"} 1
    """
    about: dict[str, dict[str, None]] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        named = ""
        for line in text.splitlines():
            if line.startswith(ABOUT):
                named = line.split(" ", 3)[2]
                about.setdefault(named, {})[line] = None
            elif line:
                samples.setdefault(named, []).append(line)
    lines = [line for named, comments in about.items() for line in (*comments, *samples.get(named, ()))]
    return "\n".join(lines) + "\n"


OUTCOMES = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error", "closed"})
"""The outcomes of turns that get their own label; an agent may send anything, and each label costs memory."""
OTHER = "other"

PATH = "/metrics"

AnInstrument = TypeVar("AnInstrument", bound=Instrument)


class ServerMetrics:
    """The metrics of one server: connections, sessions, turns, bytes, waits, refused requests.

    `host` becomes a label of every metric, for a service of several hosts. `path` is where the server offers the
    metrics as text, to anyone who may use the server.
    """

    def __init__(self, *, host: str = "", path: str = PATH) -> None:
        if not path.startswith("/"):
            raise ValueError(f"path must begin with /, got {path!r}")
        self.path = path
        self._fixed = (("host", host),) if host else ()
        self._names: dict[str, str] = {}
        self._all: list[Instrument] = []
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
        """Count an HTTP request, or an attempt at a WebSocket, if its status shows that it was refused."""
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
        """Pass all changes from now on to OpenTelemetry, too (extra `otel`); by default to its global meter."""
        if meter is None:
            meter = _global_meter()
        for instrument in self._all:
            name, said = self._names[instrument.name], instrument.help_text
            unit = "s" if isinstance(instrument, Histogram) else "By" if "bytes" in instrument.name else "1"
            made = getattr(meter, instrument.creator)(name, unit, said)
            instrument.mirror = made.record if isinstance(instrument, Histogram) else made.add


def _global_meter() -> Meter:
    try:
        from opentelemetry import metrics
    except ImportError:
        raise missing_extra("otel", "metrics with OpenTelemetry") from None
    return metrics.get_meter("accord")


UPDATE = b'"method":"session/update"'
HEAD = 120
"""First bytes of a message that are searched for its method."""
STATE = b"state_update"

PROMPT = "session/prompt"
ASKING_THE_USER = frozenset({"session/request_permission", "elicitation/create"})
MAKES_A_SESSION = frozenset({"session/new", "session/fork"})
OPENS_A_SESSION = frozenset({"session/load", "session/resume"})
CLOSES_A_SESSION = frozenset({"session/close", "session/delete"})
COUNTED = ASKING_THE_USER | MAKES_A_SESSION | OPENS_A_SESSION | CLOSES_A_SESSION | {PROMPT}
MOST_OPEN = 10_000
"""Open requests that are remembered."""


class MeasuredRequest(NamedTuple):
    """An open request."""

    method: str
    session: str
    since: float


class MeasuredConversation:
    """An observer of one connection, as the server sees it: `in` is from the client."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self._metrics = metrics
        self._asked: dict[tuple[str, RequestId], MeasuredRequest] = {}
        self._sessions: set[str] = set()
        self._turns: dict[str, float] = {}
        """When the turn of each session began."""
        metrics.opened.add()
        metrics.connections.add(1)

    def __call__(self, event: TraceEvent) -> None:
        frame = event.frame
        if frame is None:
            return
        (self._metrics.received if event.direction == IN else self._metrics.sent).add(len(frame))
        if UPDATE in frame[:HEAD] and STATE not in frame:
            return
        message = parse(frame)
        if isinstance(message, RequestFrame):
            self._ask(event, message)
        elif isinstance(message, ResponseFrame) and message.id is not None:
            other = "out" if event.direction == IN else IN
            asked = self._asked.pop((other, message.id), None)
            if asked is not None:
                self._settle(asked, message, event.time)
        elif isinstance(message, NotificationFrame) and message.method == "session/update":
            self._note_state(object_in(message.params), event.time)

    def close(self, now: float) -> None:
        """Note the end of the connection, and of everything that was open on it."""
        for session in list(self._turns):
            self._end_turn(session, "closed", now)
        for asked in self._asked.values():
            if asked.method in ASKING_THE_USER:
                self._metrics.user_wait.record(now - asked.since, outcome="closed")
        self._metrics.sessions.add(-len(self._sessions))
        self._metrics.connections.add(-1)

    def _ask(self, event: TraceEvent, call: RequestFrame) -> None:
        if call.method not in COUNTED or len(self._asked) >= MOST_OPEN:
            return
        session = _text(object_in(call.params).get("sessionId"))
        self._asked[event.direction, call.id] = MeasuredRequest(call.method, session, event.time)
        if call.method == PROMPT and session not in self._turns:
            self._turns[session] = event.time
            self._metrics.running.add(1)

    def _settle(self, asked: MeasuredRequest, answer: ResponseFrame, now: float) -> None:
        result, failed = object_in(answer.result), answer.error is not None
        if asked.method == PROMPT:
            stop = _text(result.get("stopReason"))
            if failed or stop:  # in version 2 the answer only accepts the prompt
                self._end_turn(asked.session, "error" if failed else stop, now)
        elif asked.method in ASKING_THE_USER:
            self._metrics.user_wait.record(now - asked.since, outcome="error" if failed else "answered")
        elif not failed:
            self._note_session(asked, _text(result.get("sessionId")) or asked.session)

    def _note_session(self, asked: MeasuredRequest, session: str) -> None:
        before = len(self._sessions)
        if asked.method in CLOSES_A_SESSION:
            self._sessions.discard(asked.session)
        else:
            self._sessions.add(session)
        self._metrics.sessions.add(len(self._sessions) - before)

    def _note_state(self, params: dict[str, Any], now: float) -> None:
        update = body_of(params.get("update"))
        if update.get("sessionUpdate") == STATE.decode() and update.get("state") == "idle":
            self._end_turn(_text(params.get("sessionId")), _text(update.get("stopReason")), now)

    def _end_turn(self, session: str, outcome: str, now: float) -> None:
        began = self._turns.pop(session, None)
        if began is not None:
            self._metrics.end_turn(outcome, now - began)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
