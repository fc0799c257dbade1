"""Connecting to an agent: start it, choose the version of the protocol, and explain a failure in one line.

An agent that speaks version 2 may be asked for both versions at once: each version ignores the members that it does not
know, so one `initialize` carries what both need, and one round trip serves every agent.

| the agent | what happens |
|---|---|
| answers 2, with `info` and without `agentCapabilities` | version 2 |
| answers 1 | version 1 |
| answers 2 in the shape of version 1, because it repeats any number | version 1, if it was offered |
| answers another number | refused |
| error -32022 whose `supported` has 1, or says nothing | asked again for version 1, on the same connection |
| error -32600, -32602 or -32603 | the same; if that fails too, the first error is reported |

A client that offers only version 1 sends the plain `initialize` of that version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import Raw

from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    AccordError,
    ConnectionClosed,
    DecodeError,
    PeerError,
    ProtocolError,
    Timeout,
    keep_stderr,
)
from accord.mistakes import wrong_type
from accord.schema import codec, legacy, v1
from accord.schema.base import Json, JsonObject
from accord.schema.capabilities import CURSORS, Capabilities
from accord.trace import Observer
from accord.transports import Target

if TYPE_CHECKING:
    from accord.engine.spans import Spans


class Handshake(NamedTuple):
    """A connection after `initialize`, with its negotiated version and capabilities."""

    peer: Peer
    agreed: Agreed


async def open_link(
    target: Target,
    handlers_for: Callable[[int], Handlers],
    offer: Offer,
    *,
    timeout: float,  # noqa: ASYNC109
    unstable: bool,
    limits: Limits,
    observers: Sequence[Observer],
    keep_unknown: bool = False,
    spans: Spans | None = None,
) -> Handshake:
    """Open a connection; raises Timeout, ProtocolError, PeerError or ConnectionClosed, and then leaves nothing open.

    `handlers_for` gives the handlers of a version of the protocol.
    """
    is_plain = 2 not in offer.versions
    handlers = handlers_for(1) if is_plain else None
    peer = Peer(
        target.dial(),
        handlers,
        role="client",
        unstable=unstable,
        limits=limits,
        keep_unknown=keep_unknown,
        spans=spans,
    )
    for observer in observers:
        peer.connection.observe(observer)
    try:
        begun = asyncio.get_running_loop().time()
        await _open(peer, target, timeout)
        left = begun + timeout - asyncio.get_running_loop().time()
        if not is_plain:
            return Handshake(peer, await negotiate(peer, offer, handlers_for, left))
        answer = await peer.initialize(offer.plain, timeout=left)
        return Handshake(peer, Agreed(1, answer, answer.agent_capabilities))
    except AccordError as error:
        end = await peer.connection.close()
        explained = _explained(error, target, peer.connection.pollution, end.stderr, timeout)
        raise explained from explained.__cause__ or error
    except BaseException:
        await peer.close()
        raise


async def _open(peer: Peer, target: Target, seconds: float) -> None:
    """Open the connection, which for a URL includes its handshake; raises Timeout."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            await peer.connection.open()
    except TimeoutError:
        if not deadline.expired():
            raise
        raise Timeout(f"{target.name} could not be opened within {seconds:g} seconds") from None


def _explained(
    error: AccordError, target: Target, pollution: Sequence[str], stderr: str, deadline: float
) -> AccordError:
    """Return the same error with the agent's output that was not a message."""
    said = _said(pollution, stderr)
    match error:
        case Timeout():
            return Timeout(f"{target.name} did not answer `initialize` within {deadline:g} seconds{said}")
        case PeerError():
            refusal = PeerError(error.method, error.code, error.message, error.data)
            keep_stderr(refusal, stderr)
            return refusal
        case ConnectionClosed(reason="died_at_start", exit_code=None):
            return error  # it could not be started, and the error says why
        case ConnectionClosed(reason="broken", exit_code=None):
            return error  # it could not be reached, or refused us, and the error says how
        case ConnectionClosed() if (failure := target.failure) is not None:
            unable = ConnectionClosed("failed", f"{target.name} cannot serve: {failure}")
            unable.__cause__ = failure
            return unable
        case ConnectionClosed():
            code = error.exit_code
            how = "" if code is None else f" (exit code {code})" if code >= 0 else f" (killed by signal {-code})"
            what = "ended before it answered" if error.reason == "died_at_start" else f"closed its {target.way_out}"
            said = _said(pollution, error.stderr or stderr)
            hint = "; does the program call agent.run()?" if code == 0 and not said else ""
            explained = ConnectionClosed(error.reason, exit_code=code, stderr=error.stderr)
            explained.args = (f"{target.name} {what}{how}{said}{hint}",)
            return explained
        case ProtocolError():
            return ProtocolError(f"{target.name}: {error}")
        case _:
            return error


def _said(pollution: Sequence[str], stderr: str) -> str:
    """The agent's last line on stderr, else the first line that it printed instead of a message."""
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    words = last or (f"it printed {pollution[0]!r}, which is not a message" if pollution else "")
    return f": {words.strip()[:300]}" if words else ""


log = logging.getLogger("accord")

VERSIONS = (1,)
"""The versions that a client offers by default: version 2 is a preview."""
KNOWN = (1, 2)
UNSUPPORTED_VERSION = -32022
TRIED_AGAIN = (UNSUPPORTED_VERSION, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR)
"""The errors after which version 1 is tried."""


class Offer(NamedTuple):
    """The client's part of `initialize`."""

    versions: Sequence[int]
    """The versions that it speaks."""
    info: v1.Implementation
    capabilities: v1.ClientCapabilities
    meta: JsonObject | None = None

    @property
    def plain(self) -> v1.InitializeRequest:
        """The request of version 1."""
        return v1.InitializeRequest(1, self.capabilities, self.info, meta=self.meta)

    def params(self) -> dict[str, Json]:
        """The params that ask for version 2, and for version 1 too if it is offered."""
        from accord.schema import v2
        from accord.schema.conversion import to_v2

        capabilities = to_v2(self.capabilities)
        if self.capabilities.session is not None and self.capabilities.session.cursors is not None:
            capabilities = msgspec.structs.replace(capabilities, meta={**(capabilities.meta or {}), CURSORS: {}})
        second = v2.InitializeRequest(2, self.info, capabilities, meta=self.meta)
        asked = cast("dict[str, Json]", codec.plain(second))
        if 1 in self.versions:
            older: Any = codec.plain(self.plain)
            asked = {**older, **asked}
        return asked


class Agreed(NamedTuple):
    """The version of a connection, and the agent's answer."""

    version: int
    answer: v1.InitializeResponse
    """The answer in the words of version 1."""
    declared: Any
    """The capabilities as the agent declared them."""


def checked_versions(versions: Sequence[int]) -> tuple[int, ...]:
    """Return these versions without duplicates; raises TypeError or ValueError for anything but 1 and 2."""
    if isinstance(cast("object", versions), str | bytes) or not isinstance(cast("object", versions), Sequence):
        raise wrong_type("connect(versions=...)", "a sequence of numbers, such as (2, 1)", versions)
    chosen = tuple(dict.fromkeys(versions))
    if not chosen or not all(type(version) is int and version in KNOWN for version in chosen):
        raise ValueError(f"versions must be 1, 2 or both, such as (2, 1); got {versions!r}")
    return chosen


async def negotiate(
    peer: Peer,
    offer: Offer,
    handlers_for: Callable[[int], Handlers],
    timeout: float,  # noqa: ASYNC109
) -> Agreed:
    """Send `initialize` to an agent that may speak version 2; its answer decides which handlers the connection has.

    Raises the errors of `Peer.initialize`.
    """
    deadline = asyncio.get_running_loop().time() + timeout

    def take(result: Json) -> Agreed:
        agreed = read_answer(result, offer.versions)
        peer.capabilities = Capabilities(agreed.declared, agreed.answer.agent_capabilities, agreed.answer.meta)
        peer.handle(handlers_for(agreed.version))
        return agreed

    try:
        return await _ask(peer, offer.params(), take, timeout)
    except PeerError as refusal:
        if 1 not in offer.versions or not _may_speak_v1(refusal):
            raise
        log.info("the agent refused version 2 (%s); it is asked for version 1", refusal)
        left = deadline - asyncio.get_running_loop().time()
        try:
            return await _ask(peer, codec.plain(offer.plain), take, left)
        except AccordError as second:
            log.info("the agent refused version 1 too: %s", second)
            raise refusal from None


def _may_speak_v1(refusal: PeerError) -> bool:
    data: Any = refusal.data
    if refusal.code == UNSUPPORTED_VERSION and isinstance(data, dict):
        supported = cast("dict[str, Any]", data).get("supported")
        return 1 in cast("list[Any]", supported) if isinstance(supported, list) else True
    return refusal.code in TRIED_AGAIN


async def _ask(peer: Peer, params: Json, take: Callable[[Json], Agreed], seconds: float) -> Agreed:
    """Send `initialize`; `take` gets the result before any later message is handled."""
    sent = peer.connection.ask("initialize", Raw(codec.encode(params)), lane=None, patient=False)
    agreed: asyncio.Future[Agreed] = asyncio.get_running_loop().create_future()

    def answered(result: Raw | Exception) -> None:
        try:
            error = result if isinstance(result, Exception) else None
            if not isinstance(result, Exception):
                agreed.set_result(take(codec.loads(result)))
        except Exception as problem:
            error = problem
        if error is not None:
            agreed.set_exception(error)
            agreed.exception()  # marks it as retrieved: after a deadline no caller awaits it

    sent.then(answered)
    try:
        await sent.within(max(0.0, seconds), None)
        return await agreed
    except ConnectionClosed as closed:
        if closed.reason != "process_ended":
            raise
        raise ConnectionClosed("died_at_start", exit_code=closed.exit_code, stderr=closed.stderr) from None
    except BaseException:
        sent.abandon()
        raise


def read_answer(result: Json, versions: Sequence[int]) -> Agreed:
    """Return the meaning of the answer to an `initialize` that offered these versions; raises ProtocolError."""
    if not isinstance(result, dict):
        raise ProtocolError(f"initialize: the answer's result must be an object, got {type(result).__name__}")
    members = cast("dict[str, Any]", result)
    version = members.get("protocolVersion")
    is_v2_shaped = isinstance(members.get("info"), dict) and "agentCapabilities" not in members
    try:
        if version == 2 and 2 in versions and is_v2_shaped:
            return _second(members)
        if 1 in versions and version in versions:
            if version != 1:
                log.info("the agent answered version %r in the shape of version 1; it is treated as version 1", version)
            answer: v1.InitializeResponse = codec.convert_keeping(
                legacy.capabilities_renamed({**members, "protocolVersion": 1}), v1.InitializeResponse
            )
            return Agreed(1, answer, answer.agent_capabilities)
    except DecodeError as error:
        raise ProtocolError(f"initialize: the answer's result is invalid: {error}") from error
    if version == 2 and 2 in versions:
        raise ProtocolError(
            "the agent answered version 2 of the protocol in the shape of version 1, and only version 2 was offered; "
            "connect with versions=(2, 1)"
        )
    offered = " and ".join(str(each) for each in sorted(versions))
    raise ProtocolError(
        f"the agent answered with version {version} of the protocol; "
        f"only version{'s' if len(versions) > 1 else ''} {offered} {'were' if len(versions) > 1 else 'was'} offered"
    )


def _second(members: dict[str, Any]) -> Agreed:
    from accord.dialects.v2_as_v1 import answer_as_v1
    from accord.schema import v2

    answer: v2.InitializeResponse = codec.convert_keeping(members, v2.InitializeResponse)
    return Agreed(2, answer_as_v1(answer), answer.capabilities)
