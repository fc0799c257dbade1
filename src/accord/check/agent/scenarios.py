"""The scenarios: each is one start of the agent, and a list of things that it is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from accord.check.agent.lab import Lab
from accord.check.agent.link import Gone, Link, Over, Unanswered
from accord.check.agent.settings import Profile
from accord.check.agent.turns import cancelled_turn, edited_turn, prompted
from accord.check.conversation import Exchange, object_of, objects
from accord.check.passive.options import values_of

_NO_LOAD = "the agent does not declare loadSession"

_META = {"accord.example/check": {"nested": [1, None]}}

ODD_IDS: tuple[Any, ...] = ("text", 0, -3, 2**40, "")


class Scenario(NamedTuple):
    """One start of the agent."""

    name: str
    shows: str
    run: Callable[[Lab], Awaitable[None]]
    profiles: tuple[Profile, ...] = ("smoke", "default")


async def healthy(lab: Lab) -> None:
    """What every client does: sessions, lists, turns, and the end."""
    async with lab.link() as link:
        await lab.initialize(link)
        await _unknown_messages(lab, link)
        await lab.login(link)
        first = await lab.new_session(link)
        second = await lab.new_session(link, "meta.nothing-assumed", _meta=_META)
        await _idle(lab, link, first)
        await _listed(lab, link)
        if lab.settings.prompting:
            await prompted(lab, link, first)
            await _settings(lab, link, first)
            await edited_turn(lab, link, first)
            await cancelled_turn(lab, link, first)
            await _loaded(lab, link, first)
            lab.sessions.append(first)
        await _closed(lab, link, second)
        await _deleted(lab, link, second)
        lab.process_ended(link, await link.close(lab.settings.grace), "while it was idle")


async def bare(lab: Lab) -> None:
    """A client that can do nothing: the agent must not use what was not declared."""
    async with lab.link() as link:
        await lab.initialize(link, {}, "capabilities.agent-takes-none")
        await lab.login(link)
        session = await lab.new_session(link)
        if lab.settings.prompting:
            lab.answered("prompt.content.agent-takes-text", await lab.prompt(link, session, lab.settings.prompts.plain))
            await link.quiet(lab.settings.quiet)


async def latest(lab: Lab) -> None:
    """A client of the future: the agent answers with a version of its own."""
    async with lab.link() as link:
        info = {"name": "accord-check", "version": "1"}
        exchange = await link.ask(
            "initialize",
            # A router of two versions reads it as version 2, so it has the members of both.
            {"protocolVersion": 65535, "clientCapabilities": {}, "clientInfo": info, "capabilities": {}, "info": info},
            lab.settings.start_within,
        )
        lab.answered("lint.initialize.succeeds", exchange, "version 65535 was refused, not answered with another")


async def garbage(lab: Lab) -> None:
    """Input that is no message: the agent answers it or ignores it, and goes on."""
    async with lab.link() as link:
        await lab.initialize(link)
        for name, data in (
            ("jsonrpc.error.parse", b'{"jsonrpc":"2.0","id":1,'),
            ("jsonrpc.error.invalid-request", b"[]"),
            ("jsonrpc.error.invalid-request", b'{"jsonrpc":"2.0","id":5,"method":7}'),
        ):
            await _bad_frame(lab, link, name, data)
        link.send({"id": 9_999, "result": {}})
        exchange = await link.ask("_accord.check/alive", {})
        lab.judge("lint.survives-bad-input", None, exchange.answered)


async def restarted(lab: Lab) -> None:
    """A second process: a session of the first is loaded, and goes on."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        name = "lint.load.after-restart"
        if not link.judge.conversation.declares("agent", "loadSession"):
            lab.skip(name, _NO_LOAD)
            return
        place: dict[str, Any] = {"cwd": str(lab.folder), "mcpServers": []}
        for session in lab.sessions[:1]:
            exchange = link.call("session/load", {"sessionId": session, **place})
            await link.answer(exchange, lab.settings.turn_within)
            if lab.answered(name, exchange, "a session of an earlier process cannot be loaded"):
                await link.quiet(lab.settings.quiet)
                lab.answered("session.load.goes-on", await lab.prompt(link, session, lab.settings.prompts.plain))
                await link.quiet(lab.settings.quiet)


async def ended_in_turn(lab: Lab) -> None:
    """The end of the input in the middle of a turn."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        session = await lab.new_session(link)
        lab.begin(link, session, lab.settings.prompts.slow)
        await link.quiet(lab.settings.quiet, most=1.0)
        lab.process_ended(link, await link.close(lab.settings.grace), "in a turn")


SCENARIOS = (
    Scenario("healthy", "sessions, lists, turns, cancelling, the end", healthy),
    Scenario("bare", "a client without capabilities", bare),
    Scenario("latest", "a version that does not exist yet", latest),
    Scenario("garbage", "input that is no message", garbage),
    Scenario("restarted", "a session after a restart", restarted, ("default",)),
    Scenario("ended in a turn", "the end of the input in a turn", ended_in_turn, ("default",)),
)
"""Every scenario, in the order in which they run."""


async def _unknown_messages(lab: Lab, link: Link) -> None:
    """Requests that the agent does not know are answered under their ids, and such notifications are ignored."""
    custom = [link.call("_accord.check/nothing", {}, id=given) for given in ODD_IDS]
    await _answered(lab, link, "extension.request-answered", *custom)
    await _answered(lab, link, "lint.request.answered", link.call("accord_check_nothing", {}))
    for name, method in (
        ("extension.notification-unknown", "_accord.check/nothing"),
        ("protocol.unknown-dollar-ignored", "$/accord_check_nothing"),
    ):
        link.tell(method, {})
        await _answered(lab, link, name, link.call("_accord.check/alive", {}))


async def _answered(lab: Lab, link: Link, name: str, *asked: Exchange) -> None:
    """Judge that these requests are answered, under this check."""
    for exchange in asked:
        try:
            await link.answer(exchange)
        except (Unanswered, Gone) as error:
            lab.judge(name, str(error), exchange.frame)
            raise Over from None
        lab.judge(name, None, exchange.answered)


async def _idle(lab: Lab, link: Link, session: str) -> None:
    """A cancel without a turn is a notification like any other: nothing answers it."""
    link.tell("session/cancel", {"sessionId": session})
    link.tell("session/cancel", {"sessionId": "accord-check-no-such-session"})
    await link.quiet(lab.settings.quiet, most=2.0)


async def _listed(lab: Lab, link: Link) -> None:
    names = ("session.list.needs-no-params", "session.list.empty-list", "session.list.cursor-invalid")
    if not link.judge.conversation.declares("agent", "sessionCapabilities.list"):
        for name in names:
            lab.skip(name, "the agent does not declare sessionCapabilities.list")
        return
    lab.answered(names[0], await link.ask("session/list", {}))
    unused = lab.folder / "unused"
    unused.mkdir(exist_ok=True)
    exchange = await link.ask("session/list", {"cwd": str(unused)})
    found = list(objects(exchange.fields.get("sessions")))
    wrong = f"{len(found)} sessions in a folder without any" if found else None
    if exchange.succeeded:
        lab.judge(names[1], wrong, exchange.frame, exchange.answered)
    else:
        lab.answered(names[1], exchange)
    exchange = await link.ask("session/list", {"cursor": "accord-check-no-such-cursor"})
    accepted = "a cursor that the agent never gave was accepted" if exchange.succeeded else None
    lab.judge(names[2], accepted, exchange.frame, exchange.answered)


async def _settings(lab: Lab, link: Link, session: str) -> None:
    """Set each mode and each option to what it is, so that nothing changes for what follows."""
    opened = link.judge.conversation.sessions[session].opened.fields
    modes = object_of(opened.get("modes"))
    if isinstance(current := modes.get("currentModeId"), str):
        for mode in [*(mode.get("id") for mode in objects(modes.get("availableModes"))), current]:
            exchange = await link.ask("session/set_mode", {"sessionId": session, "modeId": mode})
            lab.answered("mode.set.any-time", exchange)
    else:
        lab.skip("mode.set.any-time", "the agent offers no modes")
    selects = [option for option in objects(opened.get("configOptions")) if values_of(option)]
    for option in selects:
        asked = {"sessionId": session, "configId": option.get("id"), "value": option.get("currentValue")}
        lab.answered("config.set.any-time", await link.ask("session/set_config_option", asked))
    for option in selects[:1]:
        asked = {"sessionId": session, "configId": option.get("id"), "value": "accord-check-no-such-value"}
        exchange = link.call("session/set_config_option", asked)
        await link.answer(exchange)
        accepted = f"the option {option.get('id')!r} took a value that it does not list" if exchange.succeeded else None
        lab.judge("config.set.invalid-refused", accepted, exchange.frame, exchange.answered)
    if not selects:
        lab.skip("config.set.any-time", "the agent offers no select options")
        lab.skip("config.set.invalid-refused", "the agent offers no select options")


async def _closed(lab: Lab, link: Link, session: str) -> None:
    name = "session.close.cancels-work"
    if not link.judge.conversation.declares("agent", "sessionCapabilities.close"):
        lab.skip(name, "the agent does not declare sessionCapabilities.close")
        return
    if not lab.settings.prompting:
        await link.ask("session/close", {"sessionId": session})
        lab.skip(name, "the profile sends no prompts")
        return
    turn = lab.begin(link, session, lab.settings.prompts.slow)
    await link.quiet(lab.settings.quiet, most=1.0)
    if turn.answered is not None:
        lab.skip(name, "the turn ended before the session was closed")
    closing = await link.ask("session/close", {"sessionId": session})
    if turn.answered is None or turn.answered.number > closing.frame.number:
        await link.answer(turn)
        reason = turn.fields.get("stopReason")
        if name not in lab.reasons:
            wrong = None if reason == "cancelled" else f"the turn of a closed session ended with {reason!r}"
            lab.judge(name, wrong, closing.frame, turn.answered)


async def _deleted(lab: Lab, link: Link, session: str) -> None:
    name = "session.delete.idempotent"
    if not link.judge.conversation.declares("agent", "sessionCapabilities.delete"):
        lab.skip(name, "the agent does not declare sessionCapabilities.delete")
    elif not lab.settings.allow_delete:
        lab.skip(name, "deleting is not allowed; give --allow-delete")
    else:
        await link.ask("session/delete", {"sessionId": session})
        lab.answered(name, await link.ask("session/delete", {"sessionId": session}))
        if link.judge.conversation.declares("agent", "sessionCapabilities.list"):
            await link.ask("session/list", {})


async def _bad_frame(lab: Lab, link: Link, name: str, data: bytes) -> None:
    wanted = -32700 if name == "jsonrpc.error.parse" else -32600
    sent = link.send_raw(data)
    with suppress(TimeoutError, Gone):
        await link.until(lambda: link.last is not sent, lab.settings.quiet)
    if link.end is not None:
        lab.judge("lint.survives-bad-input", f"the agent ended after {data.decode()}", sent)
        raise Over
    last = link.last
    said = object_of(last.members.get("error")).get("code") if last is not None and last.by == "agent" else None
    if last is sent:
        lab.judge(name, f"{data.decode()} had no answer", sent)
    else:
        lab.judge(name, None if said == wanted else f"{data.decode()} was answered with {said}", sent, last)


async def _loaded(lab: Lab, link: Link, session: str) -> None:
    """Load a session again, and go on in it; load one that does not exist."""
    if not link.judge.conversation.declares("agent", "loadSession"):
        for name in ("session.load.replays-everything", "session.load.goes-on", "lint.load.unknown-refused"):
            lab.skip(name, _NO_LOAD)
        return
    place: dict[str, Any] = {"cwd": str(lab.folder), "mcpServers": []}
    exchange = await link.ask("session/load", {"sessionId": "accord-check-no-such-session", **place})
    accepted = "a session that does not exist was loaded" if exchange.succeeded else None
    lab.judge("lint.load.unknown-refused", accepted, exchange.frame, exchange.answered)
    if link.judge.conversation.declares("agent", "sessionCapabilities.close"):
        await link.ask("session/close", {"sessionId": session})
    link.forget(session)
    exchange = link.call("session/load", {"sessionId": session, **place})
    await link.answer(exchange, lab.settings.turn_within)
    await link.quiet(lab.settings.quiet * 2)
    if not lab.answered("session.load.replays-everything", exchange):
        return
    missing = [kind for kind in ("user_message_chunk", "agent_message_chunk") if kind not in link.told(session)]
    if missing:
        lab.judge(
            "session.load.replays-everything", f"the replay has no {missing[0]}", exchange.frame, exchange.answered
        )
    lab.answered("session.load.goes-on", await lab.prompt(link, session, lab.settings.prompts.plain))
    await link.quiet(lab.settings.quiet)
