"""What only version 2 says: what it refuses, what it takes as done, and a prompt while another is at work."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from accord_check.agent.lab import Lab
from accord_check.agent.link import Link
from accord_check.conversation import Exchange, object_of

NOWHERE = "accord-check-no-such-session"
INVALID_PARAMS = -32602


async def second_version(lab: Lab) -> None:
    """Requests of version 2 at their limits, in one session."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        session = await lab.new_session(link)
        await _refused(lab, link, "lint.prompt.empty-refused", "session/prompt", {"sessionId": session, "prompt": []})
        place: dict[str, Any] = {"sessionId": session, "cwd": str(lab.folder), "mcpServers": []}
        cursor = {"replayFrom": {"type": "_accord.check/no-such-cursor"}}
        await _refused(lab, link, "lint.resume.unknown-cursor", "session/resume", place | cursor)
        gone = {"sessionId": session, "toolCallId": "accord-check-no-such-call"}
        await _refused(lab, link, "lint.tool.cancel-unknown", "tool_call/cancel", gone)
        closing = await link.ask("session/close", {"sessionId": NOWHERE})
        lab.answered("lint.close.unknown-succeeds", closing, "the close of a session that is not open was refused")
        if lab.settings.prompting:
            await _two_prompts(lab, link, session)


async def _refused(lab: Lab, link: Link, name: str, method: str, params: dict[str, Any]) -> None:
    """Judge that a request is refused with -32602."""
    exchange = await link.ask(method, params)
    lab.judge(name, _not_invalid_params(exchange), exchange.frame, exchange.answered)


def _not_invalid_params(exchange: Exchange) -> str | None:
    if exchange.succeeded:
        return f"{exchange.method} was accepted"
    code = object_of(exchange.error).get("code")
    return None if code == INVALID_PARAMS else f"{exchange.method} was refused with {code}, not -32602"


async def _two_prompts(lab: Lab, link: Link, session: str) -> None:
    """A prompt while another is at work: it waits or is inserted, and a cancel ends both."""
    first = lab.begin(link, session, lab.settings.prompts.slow)
    with suppress(TimeoutError):  # an agent that never says so is told that elsewhere
        await link.until(lambda: any(it.state == "running" for it in link.states(session)), lab.settings.stops_within)
    second = lab.begin(link, session, lab.settings.prompts.plain)
    await link.quiet(lab.settings.quiet, most=1.0)
    link.tell("session/cancel", {"sessionId": session})
    await link.turn_end(first, lab.settings.turn_within)
    await link.turn_end(second, lab.settings.turn_within)
    await link.quiet(lab.settings.quiet)
