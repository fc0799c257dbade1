"""The usual path: what every client does, from the handshake to the end."""

from __future__ import annotations

from typing import Any

from accord_check.agent.lab import Lab
from accord_check.agent.link import Gone, Link, Over, Unanswered
from accord_check.agent.turns import cancelled_turn, edited_turn, prompted
from accord_check.conversation import Exchange, object_of, objects
from accord_check.passive.options import id_of, values_of

_META = {"accord.example/check": {"nested": [1, None]}}

ODD_IDS: tuple[Any, ...] = ("text", 0, -3, 2**40, "")


async def healthy(lab: Lab) -> None:
    """What every client does: sessions, lists, turns, and the end."""
    async with lab.link() as link:
        await lab.initialize(link)
        await _unknown_messages(lab, link)
        await lab.login(link)
        first = await lab.new_session(link)
        second = await lab.new_session(link, "meta.nothing-assumed", _meta=_META)
        await _idle(lab, link, second)
        await _listed(lab, link)
        if lab.settings.prompting:
            await prompted(lab, link, first)
            await _settings(lab, link, first)
            await edited_turn(lab, link, first)
            await cancelled_turn(lab, link, first)
            await _loaded(lab, link, first)
            lab.sessions.append(first)
            lab.answered("lint.cancel.idle-harmless", await lab.prompt(link, second, lab.settings.prompts.plain))
        await _closed(lab, link, second)
        await _deleted(lab, link, second)
        lab.process_ended(link, await link.close(lab.settings.grace), "while it was idle")


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
    """A cancel without a turn is a notification like any other: nothing answers it. The session is prompted later."""
    link.tell("session/cancel", {"sessionId": session})
    link.tell("session/cancel", {"sessionId": "accord-check-no-such-session"})
    await link.quiet(lab.settings.quiet, most=2.0)


async def _listed(lab: Lab, link: Link) -> None:
    names = ("session.list.needs-no-params", "session.list.empty-list", "session.list.cursor-invalid")
    if lab.lacks(link, "list", *names):
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
        await _moded(lab, link, session, modes, current)
    else:
        lab.skip("mode.set.any-time", "the agent offers no modes" if lab.version == 1 else "version 2 has no modes")
    selects = [option for option in objects(opened.get("configOptions")) if values_of(option)]
    for option in selects:
        asked = _setting(lab, session, option, option.get("currentValue"))
        lab.answered("config.set.any-time", await link.ask("session/set_config_option", asked))
    for option in selects[:1]:
        asked = _setting(lab, session, option, "accord-check-no-such-value")
        exchange = link.call("session/set_config_option", asked)
        await link.answer(exchange)
        accepted = f"the option {id_of(option)!r} took a value that it does not list" if exchange.succeeded else None
        lab.judge("config.set.invalid-refused", accepted, exchange.frame, exchange.answered)
    if not selects:
        lab.skip("config.set.any-time", "the agent offers no select options")
        lab.skip("config.set.invalid-refused", "the agent offers no select options")


async def _moded(lab: Lab, link: Link, session: str, modes: dict[str, Any], current: str) -> None:
    """Set each mode, and the first one again. A mode may be refused here: it may need a trusted folder."""
    others = [mode.get("id") for mode in objects(modes.get("availableModes")) if mode.get("id") != current]
    for mode in others:
        exchange = await link.ask("session/set_mode", {"sessionId": session, "modeId": mode})
        if exchange.succeeded:
            lab.answered("mode.set.any-time", exchange)
    exchange = await link.ask("session/set_mode", {"sessionId": session, "modeId": current})
    lab.answered("mode.set.any-time", exchange)


def _setting(lab: Lab, session: str, option: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = {"type": "id"} if lab.version == 2 else {}
    return {"sessionId": session, "configId": id_of(option), "value": value, **kind}


async def _closed(lab: Lab, link: Link, session: str) -> None:
    name = "session.close.cancels-work"
    if lab.lacks(link, "close", name):
        return
    if not lab.settings.prompting:
        await link.ask("session/close", {"sessionId": session})
        lab.skip(name, "the profile sends no prompts")
        return
    link.forget(session)
    turn = lab.begin(link, session, lab.settings.prompts.slow)
    await link.quiet(lab.settings.quiet, most=1.0)
    was_over = turn.is_over
    closing = await link.ask("session/close", {"sessionId": session})
    try:
        await link.turn_end(turn, lab.settings.answer_within)
    except Unanswered as error:
        lab.judge(name, f"{error} after the session was closed", closing.frame)
        return
    if was_over or (turn.answered is not None and turn.answered.number < closing.frame.number):
        lab.skip(name, "the turn ended before the session was closed")
        return
    wrong = None if turn.reason == "cancelled" else f"the turn of a closed session ended with {turn.reason!r}"
    lab.judge(name, wrong, closing.frame, turn.answered)


async def _deleted(lab: Lab, link: Link, session: str) -> None:
    name = "session.delete.idempotent"
    if lab.lacks(link, "delete", name):
        return
    if not lab.settings.allow_delete:
        lab.skip(name, "deleting is not allowed; give --allow-delete")
    else:
        await link.ask("session/delete", {"sessionId": session})
        lab.answered(name, await link.ask("session/delete", {"sessionId": session}))
        if lab.offers(link, "list"):
            await link.ask("session/list", {})


async def _loaded(lab: Lab, link: Link, session: str) -> None:
    """Load a session again, and go on in it; load one that does not exist."""
    names = ("session.load.replays-everything", "session.load.goes-on", "lint.load.unknown-refused")
    if lab.lacks(link, "load", *names):
        return
    exchange = await lab.load(link, "accord-check-no-such-session")
    accepted = "a session that does not exist was loaded" if exchange.succeeded else None
    lab.judge("lint.load.unknown-refused", accepted, exchange.frame, exchange.answered)
    if lab.offers(link, "close"):
        await link.ask("session/close", {"sessionId": session})
    link.forget(session)
    exchange = await lab.load(link, session)
    await link.quiet(lab.settings.quiet * 2)
    if not lab.answered("session.load.replays-everything", exchange):
        return
    told = {kind.removesuffix("_chunk") for kind in link.told(session)}
    missing = [kind for kind in ("user_message", "agent_message") if kind not in told]
    if missing:
        missed = f"the replay has no {missing[0]}{'_chunk' if lab.version == 1 else ''}"
        lab.judge("session.load.replays-everything", missed, exchange.frame, exchange.answered)
    lab.answered("session.load.goes-on", await lab.prompt(link, session, lab.settings.prompts.plain))
    await link.quiet(lab.settings.quiet)
