"""The scenarios of the profile full: what an agent offers besides the usual path, and what it does under load."""

from __future__ import annotations

from typing import Any

from accord_check.agent.raw_connection import Link
from accord_check.agent.scenario_context import Lab

IN_FLIGHT = 1_000
"""Requests that are sent before the first answer is waited for."""


async def two_sessions(lab: Lab) -> None:
    """Two sessions at work at once: what happens in one leaves the other alone."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        first, second = await lab.new_session(link), await lab.new_session(link)
        if first == second:  # reported already; two turns of one session are no fault of their own
            return
        link.forget(first)
        slow = lab.begin(link, first, lab.settings.prompts.slow)
        await link.while_open(slow, lambda: bool(link.told(first)), lab.settings.turn_within)
        plain = lab.begin(link, second, lab.settings.prompts.plain)
        cancel = link.tell("session/cancel", {"sessionId": first})
        await link.turn_end(plain, lab.settings.turn_within)
        await link.turn_end(slow, lab.settings.turn_within)
        name = "lint.sessions.independent"
        if lab.answered(name, plain, "a prompt failed while the turn of another session was cancelled"):
            wrong = "a turn ended as cancelled when another session was cancelled"
            lab.judge(name, wrong if plain.reason == "cancelled" else None, cancel, plain.answered)


async def opened_again(lab: Lab) -> None:
    """A session that is resumed without its past goes on, and a fork of it leaves it alone."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        session = await lab.new_session(link)
        await lab.prompt(link, session, lab.settings.prompts.plain)
        place: dict[str, Any] = {"sessionId": session, "cwd": str(lab.folder), "mcpServers": []}
        if not lab.lacks(link, "resume", "session.resume.ready-when-answered"):
            if lab.offers(link, "close"):
                await link.ask("session/close", {"sessionId": session})
            exchange = await lab.resume(link, session)
            name = "session.resume.ready-when-answered"
            if lab.answered(name, exchange):
                lab.answered(name, await lab.prompt(link, session, lab.settings.prompts.plain))
        if not lab.lacks(link, "fork", "lint.fork.goes-on", "session.fork.leaves-source"):
            await _forked(lab, link, session, place)


async def _forked(lab: Lab, link: Link, session: str, place: dict[str, Any]) -> None:
    exchange = await link.ask("session/fork", place, lab.settings.turn_within)
    fork = exchange.fields.get("sessionId")
    if lab.answered("lint.fork.goes-on", exchange) and isinstance(fork, str):
        lab.answered("lint.fork.goes-on", await lab.prompt(link, fork, lab.settings.prompts.plain))
        lab.answered("session.fork.leaves-source", await lab.prompt(link, session, lab.settings.prompts.plain))


async def many_requests(lab: Lab) -> None:
    """A thousand requests at once: each is answered."""
    async with lab.link() as link:
        await lab.initialize(link)
        asked = [link.call("_accord.check/nothing", {"number": number}) for number in range(IN_FLIGHT)]
        for exchange in asked:
            await link.answer(exchange)
        lab.judge("lint.request.answered", None, asked[-1].answered)


async def cancelled_question(lab: Lab) -> None:
    """A turn that is cancelled while its question of permission is open; the passive checks judge its end."""
    if not lab.settings.prompts.edit:
        return
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        session = await lab.new_session(link)
        link.lender.permit = "hold"
        turn = lab.begin(link, session, lab.settings.prompts.edit)
        await link.while_open(turn, lambda: bool(link.lender.held), lab.settings.turn_within)
        if turn.is_over:  # it did not ask
            return
        link.tell("session/cancel", {"sessionId": session})
        link.lender.permit = "cancel"
        link.settle()
        await link.turn_end(turn, lab.settings.turn_within)
        await link.quiet(lab.settings.quiet)


async def cancelled_at_once(lab: Lab) -> None:
    """A turn that is cancelled before it has said anything."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        session = await lab.new_session(link)
        turn = lab.begin(link, session, lab.settings.prompts.slow)
        link.tell("session/cancel", {"sessionId": session})
        await link.turn_end(turn, lab.settings.turn_within)
        lab.answered("lint.prompt.after-cancel", await lab.prompt(link, session, lab.settings.prompts.plain))


async def second_client(lab: Lab) -> None:
    """Two clients, each with its own process: both are served."""
    async with lab.link() as one, lab.link() as other:
        for link in (one, other):
            await lab.initialize(link)
            await lab.login(link)
        sessions = [await lab.new_session(one), await lab.new_session(other)]
        for link, session in zip((one, other), sessions, strict=True):
            lab.answered("lint.second-client", await lab.prompt(link, session, lab.settings.prompts.plain))


async def killed_in_a_turn(lab: Lab) -> None:
    """An agent that is killed in a turn, and started again: its session is opened again where it says that it can."""
    name = "lint.load.after-kill"
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        if not link.is_process:
            lab.skip(name, "the agent is not a process of ours")
            lab.skip("lint.killed.leaves-no-process", "the agent is not a process of ours")
            return
        session = await lab.new_session(link)
        await lab.prompt(link, session, lab.settings.prompts.plain)
        link.forget(session)
        turn = lab.begin(link, session, lab.settings.prompts.slow)
        await link.while_open(turn, lambda: bool(link.told(session)), lab.settings.turn_within)
        await link.kill(lab.settings.answer_within)
        can_load = lab.offers(link, "load")
        if not can_load and lab.lacks(link, "resume", name):
            return
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        exchange = await (lab.load(link, session) if can_load else lab.resume(link, session))
        if lab.answered(name, exchange, "the session of a killed process cannot be opened again"):
            await link.quiet(lab.settings.quiet)
            lab.answered("session.load.goes-on", await lab.prompt(link, session, lab.settings.prompts.plain))
