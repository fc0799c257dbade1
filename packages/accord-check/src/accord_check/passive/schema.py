"""Types: params, results and updates fit the protocol's types. Each fault is named once, with its place."""

from __future__ import annotations

import re
from typing import Any

from accord.schema import legacy
from accord.schema.methods import may_be_empty, methods
from accord_check.conversation import Exchange, Frame, Message, object_of
from accord_check.finding import Side
from accord_check.passive.handshake import is_of_other_version
from accord_check.passive.observer import Observer
from accord_check.shapes import Fault, Kind, faults

_NAMED: tuple[tuple[str, str, str], ...] = (
    # message, place, the requirement that names this fault
    ("initialize", r"\.protocolVersion$", "initialize.version.integer"),
    ("initialize answer", r"\.protocolVersion$", "initialize.version.integer"),
    ("initialize answer", r"\.authMethods\[\]\.id$", "auth.methods-advertised"),
    ("session/new", r"\.(cwd|mcpServers)$", "session.new.states-cwd-and-servers"),
    ("session/load", r"\.(cwd|mcpServers|sessionId)$", "session.load.states-cwd-and-servers"),
    ("session/resume", r"\.(cwd|mcpServers|sessionId)$", "session.resume.states-cwd-and-servers"),
    ("session/list answer", r"\.sessions\[\]\.(sessionId|cwd)$", "session.list.entries-complete"),
    (".*", r"\.configOptions\[\]\.currentValue$", "config.value-always"),
    ("session/update usage_update", r"\.update\.(used|size)$", "usage.sizes-always"),
    ("session/update usage_update", r"\.update\.cost\.(amount|currency)$", "usage.cost-complete"),
    ("session/update plan", r"\.update\.entries\[\]\.(content|priority|status)$", "plan.sent-whole"),
    ("session/prompt answer", r"\.usage\.\w+$", "usage.turn.totals-complete"),
    ("terminal/output answer", r"\.truncated$", "terminal.output.truncation-told"),
    ("elicitation/create answer", r"\.action$", "elicitation.answer.action"),
    ("elicitation/create", r"\.requestedSchema.*", "elicitation.form.flat"),
    ("elicitation/create", r"$", "elicitation.scope"),
)

_BY_KIND: dict[Kind, str] = {
    "misfit": "lint.schema.misfit",
    "damaged": "lint.schema.damaged",
    "null": "lint.schema.null-for-absent",
    "own-field": "types.no-own-fields",
    "casing": "wire.names-cased",
    "meta": "meta.is-object",
    "unknown": "lint.schema.unknown-variant",
    "legacy": "lint.legacy",
}


class Schema(Observer):
    def frame(self, frame: Frame) -> None:
        members = frame.members
        if members.get("jsonrpc") != "2.0":
            return
        allowed = {"jsonrpc", "id", "method", "params"} if "method" in members else {"jsonrpc", "id", "result", "error"}
        # A serialiser may write every member that it knows.
        own = [name for name, value in members.items() if name not in allowed and value is not None]
        own = [name for name in own if name not in ("result", "error", "params")]
        for name in own:
            self.found("types.no-own-fields", f"a message has the member {name!r} beside those of JSON-RPC", frame)

    def request(self, exchange: Exchange) -> None:
        self._method(exchange, is_request=True)
        if exchange.row is not None and not self._offers_two_versions(exchange):
            self._value(exchange.method, exchange.params, exchange.row.params, exchange.frame)

    def notification(self, message: Message) -> None:
        self._method(message, is_request=False)
        if message.row is not None:
            kind = object_of(message.params.get("update")).get("sessionUpdate")
            label = f"{message.method} {kind}" if isinstance(kind, str) else message.method
            self._value(label, message.params, message.row.params, message.frame)

    def answer(self, exchange: Exchange) -> None:
        row, frame = exchange.row, exchange.answered
        if row is None or frame is None or not exchange.succeeded or row.result is None:
            return
        if exchange.result is None and may_be_empty(row.result):
            self.judge("lint.result-null", f"the result of {exchange.method} is null", frame)
            return
        value = exchange.result
        if exchange.method == "initialize":
            value = legacy.capabilities_renamed(value)
        self._value(f"{exchange.method} answer", value, row.result, frame)

    def _offers_two_versions(self, exchange: Exchange) -> bool:
        """Whether it is an `initialize` that must be readable in more than one version."""
        asked = exchange.params.get("protocolVersion")
        return exchange.method == "initialize" and isinstance(asked, int) and not isinstance(asked, bool) and asked > 1

    def _method(self, message: Message, *, is_request: bool) -> None:
        method, by, frame = message.method, message.by, message.frame
        self.saw("lint.method.wrong-side", by)
        self.saw("lint.method.wrong-kind", by)
        self.saw("extension.method-underscore", by)
        if message.row is not None:
            other: Side = "client" if by == "agent" else "agent"
            if message.row.to not in (other, "protocol", "proxy"):
                self.found(
                    "lint.method.wrong-side", f"{method} was sent to the {other}, which does not handle it", frame
                )
            return
        table = methods(self.conversation.version)
        swapped = table.notification(method) if is_request else table.request(method)
        if swapped is not None:
            what = ("a request", "a notification") if is_request else ("a notification", "a request")
            self.found("lint.method.wrong-kind", f"{method} was sent as {what[0]}; it is {what[1]}", frame)
        elif not method.startswith(("_", "$/")) and not _is_of_any_version(method):
            self.found("extension.method-underscore", f"the method {method!r} is not of the protocol", frame)

    def _value(self, label: str, value: Any, hint: Any, frame: Frame) -> None:
        for name in ("lint.schema.misfit", "lint.schema.damaged", "types.no-own-fields", "meta.is-object"):
            self.saw(name, frame.by)
        self.saw("wire.names-cased", frame.by)
        self._saw_named(label, value, frame.by)
        for fault in faults(value, hint):
            if _is_judged_elsewhere(fault, label) or self._is_of_other_version(fault, value):
                continue
            place = re.sub(r"\[\d+\]", "[]", fault.path)
            name = _named(label, place, fault)
            where = fault.path.removeprefix(".") or "the whole"
            self.found(name, f"{label}: {where} {_said(fault)}", frame, same=f"{label} {place} {fault.problem}")

    def _is_of_other_version(self, fault: Fault, value: Any) -> bool:
        """Whether it is an update of another version, which has a check of its own."""
        kind = object_of(object_of(value).get("update")).get("sessionUpdate")
        is_tag = fault.kind == "unknown" and fault.path == ".update.sessionUpdate"
        return is_tag and isinstance(kind, str) and is_of_other_version(kind, self.conversation.version)

    def _saw_named(self, label: str, value: Any, by: Side) -> None:
        """Count what had a chance to show a fault that a requirement names."""
        for message, _, name in _NAMED:
            if name == "config.value-always":
                if isinstance(value, dict) and "configOptions" in value:
                    self.saw(name, by)
            elif message == label and name != "usage.cost-complete":
                self.saw(name, by)


def _named(label: str, place: str, fault: Fault) -> str:
    if fault.kind in ("misfit", "damaged"):
        for message, pattern, name in _NAMED:
            if re.fullmatch(message, label) and re.match(pattern, place):
                return name
    return _BY_KIND[fault.kind]


def _is_judged_elsewhere(fault: Fault, label: str) -> bool:
    """Whether another check has this fault: a word of an open set, a result that is empty, a version, a fixed field."""
    if fault.kind == "unknown":
        return fault.path.endswith((".category", ".stopReason"))
    if fault.path == "":
        return label.removesuffix(" answer") in EMPTY
    if fault.path == ".protocolVersion":
        return fault.problem == "is missing"
    if fault.path == ".connectionId":  # rfd-streamable-http-websocket-transport demands it over HTTP
        return label == "initialize answer"
    if label == "session/update session_info_update":
        return fault.path in (".update.cwd", ".update.additionalDirectories")
    return label == "initialize answer" and fault.path.endswith("].command")


def _said(fault: Fault) -> str:
    return fault.problem if fault.problem.startswith("is ") else f"- {fault.problem}"


def _is_of_any_version(method: str) -> bool:
    """Whether another version of the protocol, or an older draft, has this method."""
    name = legacy.RENAMED_METHODS.get(method, method)
    return any(table.request(name) or table.notification(name) for table in (methods(1), methods(2)))


EMPTY = {
    "authenticate": "auth.authenticate.empty-result",
    "auth/login": "auth.authenticate.empty-result",
    "logout": "auth.logout.empty-result",
    "auth/logout": "auth.logout.empty-result",
    "session/close": "session.close.empty-result",
    "session/delete": "session.delete.empty-result",
}
INVALID_PARAMS = -32602


class Results(Observer):
    def answer(self, exchange: Exchange) -> None:
        frame = exchange.answered
        if exchange.row is None or frame is None:
            return
        if exchange.succeeded:
            if exchange.method in EMPTY and exchange.by == "client":
                value = exchange.result
                is_empty = value is None or isinstance(value, dict)
                problem = None if is_empty else f"the result of {exchange.method} is {value!r:.60}"
                self.judge(EMPTY[exchange.method], problem, frame)
            return
        code = object_of(exchange.error).get("code")
        misfits = [fault for fault in faults(exchange.params, exchange.row.params) if fault.kind == "misfit"]
        if misfits and code not in (-32000, -32002, -32600, -32601):
            wrong = f"{exchange.method} without fitting params was refused with {code}, not -32602"
            self.judge("jsonrpc.error.invalid-params", None if code == INVALID_PARAMS else wrong, exchange.frame, frame)
