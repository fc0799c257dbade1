"""Frames: each is one JSON object in UTF-8, marked as JSON-RPC 2.0, and nothing else."""

from __future__ import annotations

from typing import Any

from accord.schema.tolerant import kind
from accord_check.conversation import UNREADABLE, Frame
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
            self._envelope(frame)

    def _envelope(self, frame: Frame) -> None:
        members = frame.members
        if not members.keys() & {"method", "result", "error", "id"}:
            # An object that is no message at all is one fault, not one for each member that it lacks.
            lines = "stdio.stdout-only-messages" if frame.by == "agent" else "stdio.stdin-only-messages"
            self.found(lines, f"an object that is no message: {_start(frame.data)}", frame, same="no message")
            return
        version = members.get("jsonrpc")
        wrong = None if version == "2.0" else f'"jsonrpc" is {_said(version)}, not "2.0"'
        self.judge("jsonrpc.version-member", wrong, frame)
        if "method" in members and members["method"] is not None:
            self._request(frame)
        else:
            self._answer(frame)

    def _request(self, frame: Frame) -> None:
        members = frame.members
        params = members.get("params")
        is_odd = params is not None and not isinstance(params, dict)
        self.judge(
            "jsonrpc.params-by-name", f"params of {members['method']} are {kind(params)}" if is_odd else None, frame
        )
        if "id" not in members:
            return
        given = members["id"]
        self.judge("jsonrpc.request.id-not-null", "a request with the id null" if given is None else None, frame)
        is_fraction = isinstance(given, float) and not given.is_integer()
        self.judge(
            "jsonrpc.request.id-not-fractional", f"a request with the id {given}" if is_fraction else None, frame
        )
        fits = given is None or (isinstance(given, str | int | float) and not isinstance(given, bool))
        self.judge("jsonrpc.request.id-type", None if fits else f"a request whose id is {kind(given)}", frame)

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
