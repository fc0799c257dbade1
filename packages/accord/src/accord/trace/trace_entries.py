"""`Entry`: an event of a trace with its context: its method, its session, the request that it answers.

On the wire an answer has only an id, and most updates are only `session/update`. An entry has the request that was
answered, its duration, and a description of an update.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec

from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame
from accord.trace import TraceEvent
from accord.trace.meaning import body_of, error_meaning, meaning, paths_in, result_meaning, update_meaning

Kind: TypeAlias = Literal["request", "answer", "notification", "malformed", "note", "stderr", "process", "other"]


class Entry(msgspec.Struct):
    """An event of a trace with its context."""

    number: int
    """Its number in the trace; the first event has 1."""
    event: TraceEvent
    kind: Kind
    method: str = ""
    """The method of a message; of an answer, that of its request."""
    update: str = ""
    """The kind of a `session/update`, such as `tool_call`."""
    session: str = ""
    """The id of the session that it belongs to."""
    status: Literal["", "ok", "error"] = ""
    """Of an answer: whether it is a result or an error."""
    request: Entry | None = None
    """Of an answer: the request, if the trace has it."""
    body: Mapping[str, Any] = {}
    """The params, or the result; empty if it is not an object."""
    text: str = ""
    """Its description, on one line or several."""

    @property
    def duration(self) -> float | None:
        """Return the seconds from a request to its answer; None for everything else."""
        return None if self.request is None else self.event.time - self.request.event.time

    @property
    def content(self) -> Mapping[str, Any]:
        """The update in a `session/update`; of other messages the body."""
        return body_of(self.body.get("update")) if self.update else self.body

    @property
    def paths(self) -> list[str]:
        """The files that the message names."""
        return list(paths_in(self.body))


_Key: TypeAlias = tuple[object, ...]


def entries(events: Iterable[TraceEvent]) -> Iterator[Entry]:
    """The entries of these events, in order."""
    requests: dict[_Key, Entry] = {}
    titles: dict[_Key, str] = {}
    for number, event in enumerate(events, 1):
        entry = _entry(number, event, requests)
        if entry.kind == "request":
            requests[_key(event, cast("RequestFrame", event.message).id, is_answer=False)] = entry
        elif entry.update in ("tool_call", "tool_call_update"):
            _remember_title(entry, titles)
        yield entry


def _remember_title(entry: Entry, titles: dict[_Key, str]) -> None:
    """Add the title of the tool call to an update: most have only its id."""
    call = entry.content
    key = (entry.event.link, entry.session, str(call.get("toolCallId")))
    if isinstance(title := call.get("title"), str):
        titles[key] = title
    elif key in titles:
        entry.text = update_meaning(entry.update, {**call, "title": titles[key]})


def _entry(number: int, event: TraceEvent, requests: dict[_Key, Entry]) -> Entry:
    if event.frame is None:
        return _aside(number, event)
    message = event.message
    if isinstance(message, RequestFrame | NotificationFrame):
        body = body_of(_decoded(message.params))
        update = str(body_of(body.get("update")).get("sessionUpdate", "")) if message.method == "session/update" else ""
        kind: Kind = "request" if isinstance(message, RequestFrame) else "notification"
        text = meaning(message.method, update, body)
        return Entry(number, event, kind, message.method, update, _session(body), body=body, text=text)
    if isinstance(message, ResponseFrame):
        request = requests.pop(_key(event, message.id, is_answer=True), None)
        return _answer(number, event, message, request)
    problem = message.problem if isinstance(message, Malformed) else "not a message"
    shown = event.frame[:200].decode("utf-8", "replace")
    return Entry(number, event, "malformed", text=f"{problem}: {shown}")


def _answer(number: int, event: TraceEvent, answer: ResponseFrame, request: Entry | None) -> Entry:
    method = request.method if request is not None else ""
    entry = Entry(number, event, "answer", method, request=request)
    if answer.error is not None:
        entry.status = "error"
        entry.text = error_meaning({"code": answer.error.code, "message": answer.error.message})
    else:
        entry.status = "ok"
        entry.body = body_of(_decoded(answer.result))
        entry.text = result_meaning(method, entry.body)
    entry.session = _session(entry.body) or (request.session if request is not None else "")
    return entry


def _aside(number: int, event: TraceEvent) -> Entry:
    if event.stderr is not None:
        return Entry(number, event, "stderr", text=event.stderr)
    if event.process is not None:
        return Entry(number, event, "process", text=_process_text(event.process))
    return Entry(number, event, "other" if event.note is None else "note", text=event.note or "")


def _process_text(process: Mapping[str, Any]) -> str:
    what = str(process.get("event", ""))
    match process:
        case {"event": "started", "command": [*words]}:
            return f"started {' '.join(map(str, words))}"
        case {"event": "exited", "signal": signal}:
            return f"ended by {signal}"
        case {"event": "exited", "code": code}:
            return f"ended with exit code {code}"
        case {"event": "closed", "stream": stream}:
            return f"{stream} closed"
        case {"event": "signalled", "signal": signal}:
            return f"{signal} passed on"
        case _:
            return what


def _key(event: TraceEvent, request_id: object, *, is_answer: bool) -> _Key:
    """Return the key that joins a request and its answer: the connection, the direction, and the id with its type (1 is
    not "1").
    """
    sender, to = event.hop or ("", "")
    way = (to, sender) if is_answer else (sender, to)
    is_in = (event.direction == "in") != is_answer
    return (event.link, way, is_in, type(request_id), request_id)


def _session(body: Mapping[str, Any]) -> str:
    session = body.get("sessionId")
    return session if isinstance(session, str) else ""


def _decoded(raw: Any) -> Any:
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            return json.loads(bytes(raw).decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
