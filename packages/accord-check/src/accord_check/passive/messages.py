"""JSON-RPC: each frame is one message, and each request has exactly one answer under its id."""

from __future__ import annotations

from collections import Counter
from typing import Any

from accord.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from accord.schema import legacy
from accord.schema.tolerant import kind
from accord_check.checks import Side
from accord_check.conversation import MISSING, UNREADABLE, Exchange, Frame, Message, key_of, object_of
from accord_check.passive.observer import Observer


class Framing(Observer):
    def frame(self, frame: Frame) -> None:
        self.judge("wire.utf-8", _not_utf8(frame.data), frame)
        lines = "stdio.stdout-only-messages" if frame.by == "agent" else "stdio.stdin-only-messages"
        self.saw(lines, frame.by)
        self.saw("stdio.no-batches", frame.by)
        if frame.value is UNREADABLE:
            self.found(lines, f"a line that is not JSON: {_start(frame.data)}", frame, same="not JSON")
        elif isinstance(frame.value, list):
            self.found("stdio.no-batches", f"a JSON array: {_start(frame.data)}", frame, same="array")
        elif not isinstance(frame.value, dict):
            self.found(lines, f"JSON that is no object: {_start(frame.data)}", frame, same="no object")
        else:
            self._envelope(frame, lines)

    def _envelope(self, frame: Frame, lines: str) -> None:
        members = frame.members
        if not members.keys() & {"method", "result", "error", "id"}:
            # An object that is no message at all is one fault, not one for each missing member.
            self.found(lines, f"an object that is no message: {_start(frame.data)}", frame, same="no message")
            return
        version = members.get("jsonrpc")
        self.judge("jsonrpc.version-member", version == "2.0" or f'"jsonrpc" is {_said(version)}, not "2.0"', frame)
        if "method" in members and members["method"] is not None:
            self._request(frame)
        else:
            self._answer(frame)

    def _request(self, frame: Frame) -> None:
        members = frame.members
        params = members.get("params")
        is_odd = params is not None and not isinstance(params, dict)
        self.judge("jsonrpc.params-by-name", not is_odd or f"params of {members['method']} are {kind(params)}", frame)
        if "id" not in members:
            return
        given = members["id"]
        self.judge("jsonrpc.request.id-not-null", given is not None or "a request with the id null", frame)
        is_fraction = isinstance(given, float) and not given.is_integer()
        self.judge("jsonrpc.request.id-not-fractional", not is_fraction or f"a request with the id {given}", frame)
        fits = given is None or (isinstance(given, str | int | float) and not isinstance(given, bool))
        self.judge("jsonrpc.request.id-type", fits or f"a request whose id is {kind(given)}", frame)

    def _answer(self, frame: Frame) -> None:
        members = frame.members
        has_result, has_error = "result" in members, members.get("error") is not None
        problem = None
        if has_error and members.get("result") is not None:
            problem = "an answer with both a result and an error"
        elif not has_result and not has_error:
            problem = "an answer with neither a result nor an error"
        self.judge("jsonrpc.answer.result-or-error", problem, frame)


def _not_utf8(data: bytes) -> str | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start} of a line is not UTF-8 ({error.reason})"
    return None


def _start(data: bytes) -> str:
    return repr(data[:80].decode("utf-8", "replace"))


def _said(value: Any) -> str:
    return "missing" if value is None else repr(value)


LONGEST_MESSAGE = 300
"""Characters that an error's message may have before it is no longer brief."""


class Answers(Observer):
    def begin(self) -> None:
        self._answered: dict[Side, set[tuple[type, Any]]] = {"agent": set(), "client": set()}
        """The ids of each side's requests that have been answered."""
        self._doubtful: dict[Side, int] = {"agent": 0, "client": 0}
        """How many frames of each side may get an error without an id."""
        self._open: dict[Side, Counter[tuple[type, Any]]] = {"agent": Counter(), "client": Counter()}
        """How many open requests of each side have an id. Two with one id must get two answers."""

    def frame(self, frame: Frame) -> None:
        members = frame.members
        if isinstance(members.get("method"), str):
            return
        has_id, has_method = "id" in members, members.get("method") is not None
        if not (has_id and has_method) and members.keys() & {"result", "error"}:
            self._judge_answer(frame)
            return
        if has_id:  # no message, but its id may be read
            self._open[frame.by][key_of(members["id"])] += 1
        if has_method or not has_id:
            self._doubtful[frame.by] += 1

    def request(self, exchange: Exchange) -> None:
        key, by = key_of(exchange.id), exchange.by
        verdict = not self._open[by][key] or f"a second open request has the id {exchange.id!r}"
        self.judge("lint.request.id-reused", verdict, exchange)
        self._open[by][key] += 1
        self._answered[by].discard(key)
        if not _is_sound(exchange.frame):
            self._doubtful[by] += 1

    def notification(self, message: Message) -> None:
        other: Side = "client" if message.by == "agent" else "agent"
        self.saw("jsonrpc.notification.never-answered", other)
        if not _is_sound(message.frame):
            self._doubtful[message.by] += 1

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.error is not MISSING:
            self._judge_error(exchange.error, frame)
        if exchange.row is None and exchange.method not in legacy.RENAMED_METHODS:
            self._judge_unknown(exchange)

    def _judge_answer(self, frame: Frame) -> None:
        given = frame.members.get("id")
        asker: Side = "client" if frame.by == "agent" else "agent"
        key = key_of(given)
        self.saw("jsonrpc.answer.id-echoed", frame.by)
        self.saw("jsonrpc.answer.exactly-one", frame.by)
        if still := self._open[asker].pop(key, 0):
            if still > 1:
                self._open[asker][key] = still - 1
            self._answered[asker].add(key)
        elif key in self._answered[asker]:
            self.found("jsonrpc.answer.exactly-one", f"a second answer to the request with the id {given!r}", frame)
        elif given is None:
            self._without_id(frame, asker)
        else:
            other = next((open_id for _, open_id in self._open[asker] if str(open_id) == str(given)), None)
            what = f"the request has the id {other!r}" if other is not None else "no request has it"
            self.found("jsonrpc.answer.id-echoed", f"an answer with the id {given!r}: {what}", frame)

    def _without_id(self, frame: Frame, asker: Side) -> None:
        if self._doubtful[asker]:
            self._doubtful[asker] -= 1
        elif frame.members.get("error") is not None:
            self.found(
                "jsonrpc.notification.never-answered",
                "an error without an id, although every message was readable: it answers a notification",
                frame,
            )
        else:
            self.found("jsonrpc.answer.id-echoed", "a result without an id", frame)

    def _judge_error(self, error: Any, frame: Frame) -> None:
        members = object_of(error)
        code, message = members.get("code"), members.get("message")
        fits = isinstance(code, int) and not isinstance(code, bool) and isinstance(message, str)
        self.judge("jsonrpc.error.code-and-message", fits or f"the error is {error!r:.200}", frame, same="error")
        if not isinstance(message, str):
            return
        problem = None
        if not message.strip():
            problem = "the error's message is empty"
        elif "\n" in message.strip():
            problem = f"the error's message has {message.strip().count(chr(10)) + 1} lines: {message[:80]!r}"
        elif len(message) > LONGEST_MESSAGE:
            problem = f"the error's message has {len(message):,} characters: {message[:80]!r}"
        self.judge("jsonrpc.error.message-brief", problem, frame)

    def _judge_unknown(self, exchange: Exchange) -> None:
        code = object_of(exchange.error).get("code")
        if exchange.succeeded:  # an extension that it does know
            return
        is_custom = exchange.method.startswith("_")
        name = "extension.request-unknown" if is_custom else "jsonrpc.error.method-not-found"
        # A custom method that is known may fail in its own way.
        if is_custom and code not in (INVALID_PARAMS, INVALID_REQUEST, INTERNAL_ERROR, METHOD_NOT_FOUND):
            return
        verdict = code == METHOD_NOT_FOUND or f"{exchange.method} was refused with {code}, not -32601"
        self.judge(name, verdict, exchange)


def _is_sound(frame: Frame) -> bool:
    """Whether a receiver can read the message without doubt; an error without an id may answer any other."""
    members = frame.members
    return (
        members.get("jsonrpc") == "2.0"
        and isinstance(members.get("params"), dict | None)
        and not ("id" in members and not isinstance(members["id"], str | int))
        and not members.keys() & {"result", "error"}
    )
