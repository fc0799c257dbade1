"""`Questions`: the agent's requests to its clients. All controllers are asked, and the first answer wins. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.http.sharing import frames
from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import RequestFrame, ResponseFrame

AGENT = 0
"""The agent, as a receiver of messages; clients have numbers from 1."""


class Question:
    """A request of the agent that has no answer yet."""

    def __init__(self, call: RequestFrame, session: str) -> None:
        self.call = call
        self.session = session
        self.asked: set[int] = set()
        """The clients that may still answer."""


class Questions:
    """The open questions of one agent, by the numbers under which clients know them."""

    def __init__(self, numbers: Iterator[int], out: list[tuple[int, bytes]]) -> None:
        self._numbers = numbers
        self._out = out
        self._open: dict[int, Question] = {}

    def ask(self, call: RequestFrame, session: str, clients: Sequence[int]) -> None:
        """The agent asks this. If no client is there, it waits for one."""
        number = next(self._numbers)
        self._open[number] = Question(call, session)
        for client in clients:
            self._ask(number, client)

    def _ask(self, number: int, client: int) -> None:
        question = self._open[number]
        question.asked.add(client)
        self._out.append((client, wire_messages.encode_request(number, question.call.method, question.call.params)))

    def joined(self, session: str, client: int) -> None:
        """A client has opened this session: it is asked what is open."""
        for number, question in self._open.items():
            if question.session == session and client not in question.asked:
                self._ask(number, client)

    def left(self, client: int) -> None:
        """A client has left: others may answer, or the next one."""
        for question in self._open.values():
            question.asked.discard(client)

    def answered(self, client: int, answer: ResponseFrame) -> None:
        """A client has answered. An error counts only if no other client is asked."""
        number = answer.id if isinstance(answer.id, int) else -1
        question = self._open.get(number)
        if question is None or client not in question.asked:
            return
        question.asked.discard(client)
        if answer.error is not None and question.asked:
            return
        del self._open[number]
        self._out.append((AGENT, frames.answered(answer, question.call.id)))
        self._out += [(other, frames.cancel_request(number)) for other in question.asked]

    def cancelled(self, request_id: object) -> None:
        """The agent waits for this answer no more; clients answer that they have stopped asking."""
        for number, question in self._open.items():
            if question.call.id == request_id:
                self._out += [(client, frames.cancel_request(number)) for client in question.asked]
