"""Connecting to an agent: start it, send `initialize`, and explain in one line what went wrong if that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from accord.client.negotiation import Agreed, Offer, negotiate
from accord.client.target import Target
from accord.engine.connection_limits import Limits
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import AccordError, ConnectionClosed, PeerError, ProtocolError, Timeout, add_note, keep_stderr
from accord.spans import Spans
from accord.trace.events import Observer


class Handshake(NamedTuple):
    """A connection after `initialize`, with what was agreed on."""

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
    """The same error, with what the agent printed instead of messages."""
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
            text = f"{target.name} {what}{how}{said}{hint}"
            return _Explained(text, error)
        case ProtocolError():
            return ProtocolError(f"{target.name}: {error}")
        case _:
            return error


class _Explained(ConnectionClosed):
    """How the connection ended, in a text of our own."""

    def __init__(self, text: str, end: ConnectionClosed) -> None:
        Exception.__init__(self, text)
        self.reason = end.reason
        self.exit_code = end.exit_code
        self.stderr = end.stderr
        add_note(self, end.stderr)


def _said(pollution: Sequence[str], stderr: str) -> str:
    """The agent's last line on stderr, else the first line that it printed instead of a message."""
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    words = last or (f"it printed {pollution[0]!r}, which is not a message" if pollution else "")
    return f": {words.strip()[:300]}" if words else ""
