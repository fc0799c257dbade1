"""`GuardedTransport`: a connection whose prompts and messages are admitted before the agent gets them.

Counting may have to ask a database. Meanwhile the messages behind the one that is counted are held, in order, and the
client is not read. A prompt that is refused is answered here, and the agent never sees it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from accord.errors import INVALID_REQUEST
from accord.http.server.counted_turns import CountedTurns
from accord.http.server.owner_gate import OwnerGate
from accord.http.server.validation import Refusal
from accord.jsonrpc.line_frames import Oversized
from accord.jsonrpc.wire_messages import encode_error
from accord.transports.transport_interface import End, Transport
from accord.transports.wrapped_transport import WrappedTransport


class GuardedTransport(WrappedTransport):
    """What an agent has in place of the connection.

    `counts_messages` says whether messages are counted here; those of HTTP are counted before they are read.
    `counts_turns` says whether turns are; those of a shared agent are counted there.
    """

    def __init__(
        self, link: Transport, owner: str, gate: OwnerGate, *, counts_messages: bool, counts_turns: bool
    ) -> None:
        super().__init__(link)
        self._owner = owner
        self._gate = gate
        self._counts_messages = counts_messages and gate.quotas.posts is not None
        self._counts_turns = counts_turns and gate.quotas.turns is not None
        self._turns = CountedTurns()
        self._held: deque[bytes | Oversized] = deque()
        self._passing: asyncio.Task[None] | None = None

    def send(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._gate.release(self._turns.ended_by(frame))
        self._inner.send(frames)

    def received(self, frames: Sequence[bytes | Oversized]) -> None:
        if self._passing is None and not any(map(self._is_counted, frames)):
            super().received(frames)
            return
        self._held += frames
        if self._passing is None:
            self.hold_reading()
            self._passing = asyncio.create_task(self._pass_held(), name="accord http: count prompts of an owner")

    def _is_counted(self, frame: bytes | Oversized) -> bool:
        if self._counts_messages:
            return True
        return self._counts_turns and isinstance(frame, bytes) and self._turns.new_turn(frame) is not None

    async def _pass_held(self) -> None:
        while self._held:
            frame = self._held.popleft()
            if self._counts_messages:
                await self._gate.wait_to_spend(self._owner)
            if not self._counts_turns or not isinstance(frame, bytes) or await self._admits(frame):
                super().received([frame])
        self._passing = None
        self.let_read()

    async def _admits(self, frame: bytes) -> bool:
        """Whether the agent gets this message: it begins no turn, or one that is admitted."""
        if (prompt := self._turns.new_turn(frame)) is None:
            return True
        try:
            use = await self._gate.admit_turn(self._owner)
        except Refusal as refusal:
            self._inner.send([encode_error(prompt.id, INVALID_REQUEST, refusal.problem)])
            return False
        if use is not None:
            self._turns.begin(prompt, use)
        return True

    def ended(self, end: End) -> None:
        self._held.clear()
        if self._passing is not None:
            self._passing.cancel()
        for use in self._turns.end():
            self._gate.release(use)
        super().ended(end)
