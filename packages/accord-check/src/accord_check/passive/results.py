"""Answers to particular requests: params that do not fit are refused as such, and empty results are empty."""

from __future__ import annotations

from accord_check.conversation import Exchange, object_of
from accord_check.passive.observer import Observer
from accord_check.shapes import faults

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
