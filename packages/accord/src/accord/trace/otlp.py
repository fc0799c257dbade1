"""A trace as OpenTelemetry spans, in the JSON encoding of OTLP, which collectors read from files and over HTTP. PURE.

A turn is a span `invoke_agent`; each tool call in it is a span `execute_tool`, from the first sight of it to its last
change; each request is a span with its method's name, below the turn of its session. The ids of spans follow from the
trace, so a second export gives the same ones. If a prompt carries a `traceparent`, its turn is a part of that trace.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from accord.trace import genai
from accord.trace.meaning import body_of, text_of
from accord.trace.trace_entries import Entry
from accord.trace.trace_file import TraceHeader

CLIENT, SERVER, INTERNAL = 3, 2, 1
"""The kinds of spans, as OTLP numbers them."""
_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class _Span(msgspec.Struct):
    """A span that is not yet encoded."""

    name: str
    key: str
    """The text from which its id is derived."""
    start: float
    kind: int = INTERNAL
    end: float | None = None
    parent: _Span | None = None
    attributes: dict[str, Any] = {}
    events: list[tuple[float, str]] = []
    failure: str | None = None
    remote: tuple[str, str] | None = None
    """The ids of the trace and of the span that a `traceparent` names."""


class _Spans:
    """The spans of a trace. `content` includes prompts, outputs and the arguments of tools."""

    def __init__(self, header: TraceHeader, *, content: bool = False) -> None:
        self._header = header
        self._content = content
        self._seed = f"{header.started} {header.part} {' '.join(header.command)} {header.peer}"
        self._agent: Mapping[str, Any] = {}
        self._version: Any = None
        self._open: dict[int, _Span] = {}
        self._turns: dict[str, _Span] = {}
        self._tools: dict[tuple[str, str], _Span] = {}
        self._said: dict[str, list[str]] = {}
        self._last = 0.0
        self.spans: list[_Span] = []
        """All spans, in the order of their starts."""

    def add(self, entry: Entry) -> None:
        """Take the next entry of the trace."""
        self._last = entry.event.time
        if entry.kind == "request":
            self._request(entry)
        elif entry.kind == "answer" and entry.request is not None:
            self._answer(entry, entry.request)
        elif entry.update:
            self._update(entry)

    def document(self) -> dict[str, Any]:
        """The spans as a request of OTLP, in JSON."""
        began = round(self._header.timestamp * 1e6) * 1000
        resource = {"service.name": str(self._agent.get("name") or "agent"), "telemetry.sdk.language": "python"}
        spans = [self._encoded(span, began) for span in self.spans]
        scope = {"name": "accord", **({"version": version} if (version := self._header.tool.partition(" ")[2]) else {})}
        return {
            "resourceSpans": [
                {"resource": {"attributes": _pairs(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}
            ]
        }

    def _request(self, entry: Entry) -> None:
        span = _Span(entry.method, f"request {entry.number}", entry.event.time, CLIENT)
        span.attributes = {
            genai.RPC_SYSTEM: "jsonrpc",
            genai.RPC_METHOD: entry.method,
            genai.RPC_REQUEST: str(getattr(entry.event.message, "id", "")),
        }
        if entry.session:
            span.attributes[genai.CONVERSATION] = entry.session
        found = _PARENT.fullmatch(str(body_of(entry.body.get("_meta")).get("traceparent", "")))
        span.remote = (found[1], found[2]) if found else None
        if entry.method == "session/prompt":
            self._turn(entry, span)
        else:
            span.parent = self._turns.get(entry.session)
        if entry.method == "session/request_permission":
            call = str(body_of(entry.body.get("toolCall")).get("toolCallId", ""))
            span.parent = self._tools.get((entry.session, call), span.parent)
            span.name = "acp.permission"
        self._open[entry.number] = span
        self.spans.append(span)

    def _turn(self, entry: Entry, span: _Span) -> None:
        name = str(self._agent.get("name") or "")
        span.name = f"{genai.INVOKE_AGENT} {name}".strip()
        span.attributes |= {genai.OPERATION: genai.INVOKE_AGENT, genai.PROTOCOL_VERSION: self._version}
        span.attributes |= {genai.AGENT_NAME: name, genai.AGENT_VERSION: self._agent.get("version")}
        if self._content:
            span.attributes[genai.INPUT_MESSAGES] = _messages("user", text_of(entry.body.get("prompt")))
        self._turns[entry.session] = span
        self._said[entry.session] = []

    def _answer(self, entry: Entry, request: Entry) -> None:
        if entry.method == "initialize":
            self._agent = body_of(entry.body.get("agentInfo") or entry.body.get("info"))
            self._version = entry.body.get("protocolVersion")
        span = self._open.pop(request.number, None)
        if span is None:
            return
        span.end = entry.event.time
        if entry.status == "error":
            span.failure = entry.text if self._content else entry.text.partition(" ")[0]
            code = entry.text.partition(" ")[0]
            span.attributes |= {genai.ERROR_TYPE: code, genai.RPC_ERROR_CODE: code}
        if entry.method == "session/request_permission":
            span.attributes[genai.OUTCOME] = entry.text
        if entry.method == "session/prompt":
            self._end_turn(entry, request, span)

    def _end_turn(self, entry: Entry, request: Entry, span: _Span) -> None:
        span.attributes[genai.STOP_REASON] = entry.body.get("stopReason")
        usage = body_of(entry.body.get("usage"))
        span.attributes |= {
            genai.INPUT_TOKENS: usage.get("inputTokens"),
            genai.OUTPUT_TOKENS: usage.get("outputTokens"),
        }
        if self._content:
            said = "".join(self._said.get(request.session, []))
            span.attributes[genai.OUTPUT_MESSAGES] = _messages("assistant", said)
        if self._turns.get(request.session) is span:
            del self._turns[request.session]

    def _update(self, entry: Entry) -> None:
        turn = self._turns.get(entry.session)
        if turn is not None:
            names = {name for _, name in turn.events}
            if genai.FIRST_UPDATE not in names:
                turn.events = [*turn.events, (entry.event.time, genai.FIRST_UPDATE)]
            if entry.update == "agent_message_chunk":
                if genai.FIRST_TEXT not in names:
                    turn.events = [*turn.events, (entry.event.time, genai.FIRST_TEXT)]
                self._said[entry.session].append(entry.text)
        if entry.update in ("tool_call", "tool_call_update"):
            self._tool(entry, turn)

    def _tool(self, entry: Entry, turn: _Span | None) -> None:
        call = entry.content
        number = str(call.get("toolCallId", ""))
        span = self._tools.get((entry.session, number))
        if span is None:
            span = _Span(genai.EXECUTE_TOOL, f"tool {entry.number}", entry.event.time, parent=turn)
            span.attributes = {
                genai.OPERATION: genai.EXECUTE_TOOL,
                genai.TOOL_CALL: number,
                genai.CONVERSATION: entry.session,
            }
            self._tools[entry.session, number] = span
            self.spans.append(span)
        span.end = entry.event.time
        name = call.get("name") or call.get("kind")
        if isinstance(name, str):
            span.name = f"{genai.EXECUTE_TOOL} {name}"
            span.attributes[genai.TOOL_NAME] = name
        if isinstance(call.get("kind"), str):
            span.attributes[genai.TOOL_KIND] = call.get("kind")
        if call.get("status") == "failed":
            span.failure = "failed"
            span.attributes[genai.ERROR_TYPE] = "failed"
        if self._content:
            given = {genai.TOOL_ARGUMENTS: call.get("rawInput"), genai.TOOL_RESULT: call.get("rawOutput")}
            span.attributes |= {key: json.dumps(value) for key, value in given.items() if value is not None}

    def _encoded(self, span: _Span, began: int) -> dict[str, Any]:
        end = self._last if span.end is None else span.end
        encoded: dict[str, Any] = {
            "traceId": self._trace_id(span),
            "spanId": self._span_id(span),
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": str(began + round(span.start * 1e9)),
            "endTimeUnixNano": str(began + round(end * 1e9)),
            "attributes": _pairs(span.attributes),
        }
        parent = span.remote[1] if span.remote else self._span_id(span.parent) if span.parent else None
        if parent is not None:
            encoded["parentSpanId"] = parent
        if span.events:
            encoded["events"] = [
                {"timeUnixNano": str(began + round(time * 1e9)), "name": name} for time, name in span.events
            ]
        if span.failure is not None:
            encoded["status"] = {"code": 2, "message": span.failure}
        return encoded

    def _trace_id(self, span: _Span) -> str:
        """Return one trace id for each session, unless a `traceparent` gives another."""
        if span.remote is not None:
            return span.remote[0]
        if span.parent is not None:
            return self._trace_id(span.parent)
        session = str(span.attributes.get(genai.CONVERSATION, ""))
        return hashlib.sha256(f"{self._seed} {session}".encode("utf-8", "replace")).hexdigest()[:32]

    def _span_id(self, span: _Span) -> str:
        return hashlib.sha256(f"{self._seed} {span.key}".encode("utf-8", "replace")).hexdigest()[:16]


def as_otlp(header: TraceHeader, entries: Iterable[Entry], *, content: bool = False) -> dict[str, Any]:
    """The spans of a trace as a request of OTLP, in JSON. `content` includes prompts, outputs and arguments."""
    spans = _Spans(header, content=content)
    for entry in entries:
        spans.add(entry)
    return spans.document()


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items() if value not in (None, "")]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
