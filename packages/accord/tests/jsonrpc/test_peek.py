"""A glance at a heavy message sees what a parse sees, but for the values."""

from __future__ import annotations

from typing import Any

import pytest

from accord.engine.incoming_requests import session_of
from accord.jsonrpc.chunked_decode import peek
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame, parse

MANY = b",".join([b"123456789"] * 100_000)


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"m","params":{"sessionId":"s","x":[%b]}}',
        b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[%b],"sessionId":"s"}}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"m","params":{"x":[%b]}}',
        b'{"id":7,"result":{"sessionId":"s","x":[%b]},"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no","data":[%b]}}',
        b'{"jsonrpc":"2.0","id":7,"result":[%b]}',
        b'{"jsonrpc":"2.0","id":7,"result":{"x":[%b]},"error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no","data":[%b]}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"sessionId":7,"x":[%b]}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"x":[%b]}',
        b'{"jsonrpc":"2.0","id":1,"x":[%b]}',
    ],
)
def test_a_glance_agrees_with_a_parse(frame: bytes) -> None:
    assert _seen(peek(frame % MANY)) == _seen(parse(frame % MANY))


def _seen(message: RequestFrame | NotificationFrame | ResponseFrame | Malformed) -> tuple[Any, ...]:
    match message:
        case RequestFrame(id=request_id, method=method, params=params):
            return "call", request_id, method, session_of(params)
        case NotificationFrame(method=method, params=params):
            return "tell", method, session_of(params)
        case ResponseFrame(id=request_id, result=result, error=error):
            return "answer", request_id, result is None, session_of(result), error is None
        case Malformed() as malformed:
            return "malformed", malformed
