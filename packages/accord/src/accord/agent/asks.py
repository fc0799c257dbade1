"""`Asks`: what sends requests to the client on behalf of a connection, a session or a turn."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

from accord.schema.base import Json, Request

ResultT = TypeVar("ResultT")


class Asks(Protocol):
    """Sends requests and waits for their answers: a peer, or a turn, whose end cancels them."""

    def request(self, request: Request[ResultT], /, *, force: bool = False) -> Awaitable[ResultT]: ...

    def request_raw(self, method: str, params: Json = None, /, *, session_id: str | None = None) -> Awaitable[Json]: ...
