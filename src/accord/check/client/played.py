"""`Played`: one start of our agent by the client, with what scenarios need: the turn, probes, and judgements."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from accord.check.agent.link import Gone, Over, Unanswered, Wire
from accord.check.agent.recording import Recording
from accord.check.catalogue import CHECKS
from accord.check.client.arrival import Arrival
from accord.check.client.part import Agent, Part
from accord.check.client.settings import ClientSettings
from accord.check.conversation import Exchange, Frame, object_of, objects
from accord.trace import Direction

ALIVE = "_accord.check/alive"
"""A request that no client knows: its answer, an error as a rule, shows that the client goes on."""


class Played(Wire):
    """One start of our agent, played by a part."""

    def __init__(self, transport: Arrival, part: Part, settings: ClientSettings) -> None:
        self.record = Recording()
        """The record of this start alone."""
        self.settings = settings
        self.arrival = transport
        self.turn: Exchange | None = None
        """The prompt whose turn a scenario plays."""
        self.reasons: dict[str, str] = {}
        """Why a check was not exercised."""
        self.asked: list[Frame] = []
        """The requests and notifications of the client."""
        self.agent = Agent(part, self._prompted)
        self._late = settings.late if part.late else 0.0
        self._answers_custom = True
        super().__init__(transport, self.agent, self.record, within=settings.answer_within, side="agent")

    # What checks say

    def judged(self, name: str, problem: str | None, *places: Frame | None) -> None:
        """This check had something to judge, and found this problem, if any."""
        check = CHECKS[name]
        self.judge.bench.saw(check, "client")
        if problem is not None:
            frames = [place for place in places if place is not None]
            self.judge.bench.found(check, "client", problem, frames, session=self.session)

    def skip(self, name: str, reason: str) -> None:
        """This check had nothing to judge, for this reason."""
        self.reasons.setdefault(name, reason)

    # The turn

    @property
    def session(self) -> str | None:
        """The session of the turn."""
        return self.turn.session_id if self.turn is not None else None

    @property
    def folder(self) -> Path:
        """The folder of the turn's session."""
        return Path(os.path.realpath(self.agent.sessions.get(self.session or "", "/")))

    def declares(self, path: str) -> bool:
        """Whether the client declared this capability."""
        return self.judge.conversation.declares("client", path)

    async def prompted(self) -> Exchange:
        """Wait for the first prompt. Raises Over if the client ends without one, or sends none in time."""
        try:
            await self.until(lambda: self.turn is not None, self.settings.start_within)
        except (TimeoutError, Gone):
            raise Over from None
        assert self.turn is not None
        return self.turn

    def say(self, text: str) -> Frame:
        """Send a text of the agent."""
        return self.update("agent_message_chunk", content={"type": "text", "text": text})

    def update(self, kind: str, /, **fields: Any) -> Frame:
        """Send an update of the turn's session."""
        return self.tell("session/update", {"sessionId": self.session, "update": {"sessionUpdate": kind, **fields}})

    def call_here(self, method: str, /, **params: Any) -> Exchange:
        """Send a request about the turn's session."""
        return self.call(method, {"sessionId": self.session, **params})

    async def ask_here(self, method: str, /, **params: Any) -> Exchange:
        """Send a request about the turn's session that needs no user, and judge that it is answered."""
        exchange = self.call_here(method, **params)
        await self.owed(exchange, "lint.client.answers")
        return exchange

    async def owed(self, exchange: Exchange, name: str) -> Exchange:
        """Wait for an answer that needs no user, as this check. Raises Over if none comes."""
        try:
            await self.answer(exchange)
        except Unanswered as error:
            self.judged(name, str(error), exchange.frame)
            raise Over from None
        self.judged(name, None, exchange.answered)
        return exchange

    def finish(self, reason: str = "end_turn") -> None:
        """End the turn."""
        if self.turn is not None and self.turn.answered is None:
            self.send({"id": self.turn.id, "result": {"stopReason": reason}})

    @property
    def text(self) -> str:
        """The text of the prompt."""
        blocks = objects(self.turn.params.get("prompt")) if self.turn is not None else ()
        return "".join(str(block.get("text", "")) for block in blocks)

    # Probes

    async def answers_custom(self) -> None:
        """Ask something that the client does not know. The probes that follow use the same request."""
        try:
            await self.owed(self.call(ALIVE, {}), "extension.request-answered")
        except Over:
            self._answers_custom = False

    async def alive(self, name: str, after: str, *places: Frame) -> None:
        """Judge that the client goes on after what it was sent. Raises Over if it does not."""
        try:
            await self._answers_something()
        except Unanswered:
            self.judged(name, f"the client answered no request after {after}", *places)
            raise Over from None
        except Gone as error:
            self.judged(name, f"{error} after {after}", *places)
            raise Over from None
        self.judged(name, None)

    async def _answers_something(self) -> None:
        """Wait for an answer; of a client that answers no custom request, only wait for a while."""
        if self._answers_custom:
            await self.ask(ALIVE, {})
            return
        await self.quiet(self.settings.quiet)
        if self.end is not None:
            raise Gone(self._how_it_ended())

    # What the base calls

    def _prompted(self, exchange: Exchange) -> None:
        if self.turn is None:
            self.turn = exchange
        else:  # a scenario plays one turn; the others are short
            self.send({"id": exchange.id, "result": {"stopReason": "end_turn"}})

    def _seen(self, direction: Direction, data: bytes) -> Frame:
        frame = super()._seen(direction, data)
        if direction == "in" and "method" in frame.members:
            self.asked.append(frame)
        return frame

    def _serve(self, exchange: Exchange) -> None:
        if self._late and exchange.method in ("initialize", "session/new"):
            asyncio.get_running_loop().call_later(self._late, super()._serve, exchange)
        else:
            super()._serve(exchange)


def refused(exchange: Exchange) -> str:
    """Why a request failed, as a reason for what could not be judged."""
    error = object_of(exchange.error)
    return f"the client refused {exchange.method}: {error.get('code')} {str(error.get('message', ''))[:80]}".rstrip()
