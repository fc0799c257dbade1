"""The quotas of owners: how their usage is counted, and where a connection or a prompt is refused.

    initialize, WebSocket ──▶ admit_connection ──▶ 429          POST ──▶ spend ──▶ 429
    prompt ──▶ QuotaTransport ──▶ admit ──▶ JSON-RPC error      message of a WebSocket ──▶ spend ──▶ it waits

All hosts count together, and strictly: a connection or a turn is admitted, or it is not. A single server counts in its
memory (`LocalCounts`), hosts count in their directory (`accord.hosts`).

A rate is withdrawn from the owner's bucket for messages that have arrived, and never in advance: what one host reserved
for later could be spent after the bucket has filled again. During a withdrawal, further messages wait for the next one,
which is for all of them. So a busy owner costs the directory few requests, and one whose bucket is empty none.

A turn begins with a prompt. In version 1 it ends with the answer to the prompt. In version 2 that answer only accepts
the prompt, and a `state_update` reports when the session is idle. So updates are recognised by their first bytes, and
only those with the letters of a state are parsed.

Counting may involve a database. Meanwhile the messages after the one that is counted are held, in order, and the client
is not read. A prompt that is refused is answered here, and the agent never sees it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import ceil
from typing import Any, NamedTuple

from accord.engine.incoming_requests import session_of
from accord.errors import INVALID_REQUEST, StoreError
from accord.http.server.server_limits import Bucket, Kind, Quotas, Withdrawal
from accord.http.server.unanswered_requests import PROMPT
from accord.http.server.validation import Refusal
from accord.jsonrpc.line_frames import Oversized, RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame, encode_error, parse
from accord.trace.meaning import body_of, object_in
from accord.transports import End, Transport
from accord.transports.wrapped_transport import WrappedTransport

MOST_BUCKETS = 10_000
"""Buckets that are remembered before full ones are dropped; a full one needs no memory."""


class Use(NamedTuple):
    """One connection or turn of an owner, from its admission to its release."""

    kind: Kind
    owner: str
    """The key of the owner."""
    id: str


def new_use(kind: Kind, owner: str) -> Use:
    """Return a use with its own id."""
    return Use(kind, owner_key(owner), secrets.token_hex(12))


def owner_key(owner: str) -> str:
    """Return a hash that identifies an owner: names may be long, and a directory need not know them."""
    return blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class LocalCounts:
    """Counts in memory, for a single server.

    `clock` returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: defaultdict[tuple[Kind, str], set[str]] = defaultdict(set)
        self._full_at: dict[str, float] = {}

    async def admit(self, use: Use, most: int) -> bool:
        """Count this use if its owner has fewer than `most` of its kind. Raises StoreError where a database counts."""
        uses = self._uses[use.kind, use.owner]
        if len(uses) >= most:
            return False
        uses.add(use.id)
        return True

    def release(self, use: Use) -> None:
        """Count this use no more; fine if it was never counted."""
        uses = self._uses[use.kind, use.owner]
        uses.discard(use.id)
        if not uses:
            del self._uses[use.kind, use.owner]

    async def withdraw(self, owner: str, bucket: Bucket, most: int) -> Withdrawal:
        """Take up to so many of this owner's posts."""
        now, key = self._clock(), owner_key(owner)
        withdrawal = bucket.take(self._full_at.get(key, now) - now, most)
        self._full_at[key] = now + withdrawal.full_in
        if len(self._full_at) > MOST_BUCKETS:
            self._full_at = {key: at for key, at in self._full_at.items() if at > now}
        return withdrawal


class ProcessCounts:
    """Counts the agent processes of a server, in total and for each owner.

    >>> processes = ProcessCounts(total=10, each=1)
    >>> processes.check("ada")
    >>> processes.begin("ada")
    >>> processes.check("ada")
    Traceback (most recent call last):
    accord.http.server.validation.Refusal: too many agent processes: this owner has 1, at most 1 are allowed; ...
    """

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._running: Counter[str] = Counter()

    def check(self, owner: str) -> None:
        """Raise Refusal if one more process of this owner would exceed a limit."""
        if self._running[owner] >= self._each:
            raise Refusal(429, _too_many(f"this owner has {self._running[owner]:,}", self._each))
        if (running := self._running.total()) >= self._total:
            raise Refusal(503, _too_many(f"the server has {running:,}", self._total))

    def begin(self, owner: str) -> None:
        """Count one more process of this owner."""
        self._running[owner] += 1

    def end(self, owner: str) -> None:
        """Count one process of this owner less."""
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]


def _too_many(has: str, most: int) -> str:
    return f"too many agent processes: {has}, at most {most:,} are allowed; end a connection"


MOST_PURSES = 10_000
"""Owners whose purses are remembered."""

_ALL = {"connections": "open connections", "turns": "running turns"}


class WithdrawnPosts:
    """The posts that this host has withdrawn for the waiting messages of one owner."""

    def __init__(self) -> None:
        self.waiting = 0
        """Messages that wait for a post."""
        self.left = 0
        self.empty_until = 0.0
        """Until when there is nothing to withdraw."""
        self.withdrawing = asyncio.Lock()


class OwnerGate:
    """Admits connections, turns and posts of each owner. `counts` is replaced when a server joins other hosts."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.counts = LocalCounts()
        self._bucket = quotas.bucket
        self._purses: dict[str, WithdrawnPosts] = {}

    async def admit(self, kind: Kind, owner: str) -> Use | None:
        """Count one more connection or running turn of this owner; raises Refusal if that is one too many."""
        if (most := self.quotas.connections if kind == "connections" else self.quotas.turns) is None:
            return None
        use = new_use(kind, owner)
        try:
            admitted = await self.counts.admit(use, most)
        except StoreError as error:
            self.counts.release(use)  # its answer may be lost, and it be counted
            raise Refusal(503, f"the {_ALL[kind]} of this owner cannot be counted now; try again") from error
        except BaseException:
            self.counts.release(use)
            raise
        if not admitted:
            raise Refusal(
                429, f"this owner has as many {_ALL[kind]} as its quota allows ({most:,}): end one, or try again later"
            )
        return use

    def release(self, use: Use | None) -> None:
        """Count a connection or a turn no more."""
        if use is not None:
            self.counts.release(use)

    async def spend(self, owner: str) -> None:
        """Count one message of this owner; raises Refusal if it comes too fast."""
        if wait := await self._spend(owner):
            assert self._bucket is not None
            raise Refusal(
                429,
                f"too many messages: this owner may send {self._bucket.rate:g} a second, "
                f"and {self._bucket.burst:,} at once",
                retry_after=max(1, ceil(wait)),
            )

    async def wait_to_spend(self, owner: str) -> None:
        """Count one message of this owner, when the rate allows it."""
        while wait := await self._spend(owner):  # noqa: ASYNC110 - a rate has no event
            await asyncio.sleep(wait)

    async def _spend(self, owner: str) -> float:
        """Count one message; returns 0, or the seconds after which to try again."""
        if self._bucket is None:
            return 0.0
        purse = self._purse(owner)
        purse.waiting += 1
        try:
            async with purse.withdrawing:
                if not purse.left and (wait := await self._withdraw(owner, purse, self._bucket)):
                    return wait
                purse.left -= 1
                return 0.0
        finally:
            purse.waiting -= 1
            if not purse.waiting:
                purse.left = 0  # those of messages whose clients have disconnected meanwhile

    async def _withdraw(self, owner: str, purse: WithdrawnPosts, bucket: Bucket) -> float:
        now = asyncio.get_running_loop().time()
        if purse.empty_until > now:
            return purse.empty_until - now
        withdrawal = await self.counts.withdraw(owner, bucket, purse.waiting)
        purse.left = withdrawal.taken
        purse.empty_until = now + withdrawal.wait
        return 0.0 if withdrawal.taken else withdrawal.wait

    def _purse(self, owner: str) -> WithdrawnPosts:
        if owner not in self._purses:
            if len(self._purses) >= MOST_PURSES:
                self._purses = {name: it for name, it in self._purses.items() if it.waiting}
            self._purses[owner] = WithdrawnPosts()
        return self._purses[owner]

    def guards(self) -> bool:
        """Whether the messages of a connection have to be looked at."""
        return self.quotas.turns is not None or self._bucket is not None


_UPDATE = b'"method":"session/update"'
_HEAD = 120
"""First bytes of a message that are searched for its method."""
_STATE = b"state_update"


class CountedTurn(NamedTuple):
    """A running turn: the prompt that began it, and the use to release when it ends."""

    call: RequestId
    use: Use


class CountedTurns:
    """The running turns of one connection, by their sessions."""

    def __init__(self) -> None:
        self._running: dict[str, CountedTurn] = {}

    def new_turn(self, frame: bytes) -> RequestFrame | None:
        """The prompt in this message of the client, if it begins a turn; a session has one turn at a time."""
        if b"prompt" not in frame and b"\\u" not in frame:  # an escape may spell any letter
            return None
        call = parse(frame)
        if (
            not isinstance(call, RequestFrame)
            or call.method != PROMPT
            or (session_of(call.params) or "") in self._running
        ):
            return None
        return call

    def begin(self, prompt: RequestFrame, use: Use) -> None:
        """Note a turn that was admitted."""
        self._running[session_of(prompt.params) or ""] = CountedTurn(prompt.id, use)

    def ended_by(self, frame: bytes) -> Use | None:
        """Return the uses to release for this message of the agent: those of the turn that it ends."""
        if not self._running or (_UPDATE in frame[:_HEAD] and _STATE not in frame):
            return None
        match parse(frame):
            case ResponseFrame() as answer if answer.error is not None or "stopReason" in object_in(answer.result):
                session = next((name for name, turn in self._running.items() if turn.call == answer.id), None)
            case NotificationFrame(method="session/update", params=params):
                session = _idle_session(object_in(params))
            case _:
                return None
        turn = None if session is None else self._running.pop(session, None)
        return None if turn is None else turn.use

    def end(self) -> list[Use]:
        """Note the end of the connection; returns the uses to release."""
        uses = [turn.use for turn in self._running.values()]
        self._running.clear()
        return uses


def _idle_session(params: dict[str, Any]) -> str | None:
    update = body_of(params.get("update"))
    if update.get("sessionUpdate") == _STATE.decode() and update.get("state") == "idle":
        return str(params.get("sessionId") or "")
    return None


class QuotaTransport(WrappedTransport):
    """The transport that an agent gets for a connection with quotas.

    `counts_messages` is whether messages are counted here; those of HTTP are counted before they are read.
    `counts_turns` is whether turns are; those of a shared agent are counted there.
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
            use = await self._gate.admit("turns", self._owner)
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
