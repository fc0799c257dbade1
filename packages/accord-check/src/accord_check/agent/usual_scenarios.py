"""The usual path: what every client does, from the handshake to the end, and what version 2 adds to it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from accord_check.agent.raw_connection import Gone, Link, Over, Unanswered
from accord_check.agent.scenario_context import Lab
from accord_check.agent.settings import NOTES
from accord_check.conversation import Exchange, Frame, object_of, objects
from accord_check.passive.sessions import id_of, values_of

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


async def prompted(lab: Lab, link: Link, session: str) -> None:
    """Prompts of text and of links, and those of the settings."""
    prompts = lab.settings.prompts
    lab.answered("prompt.content.agent-takes-text", await lab.prompt(link, session, prompts.plain))
    await link.quiet(lab.settings.quiet)
    uri = (lab.folder / NOTES).as_uri()
    named = {"type": "resource_link", "name": NOTES, "uri": uri}
    linked = await lab.prompt(link, session, "What is the name of this file? Answer with the name.", more=[named])
    lab.answered("prompt.content.agent-takes-links", linked)
    for text in prompts.more:
        await lab.prompt(link, session, text)
    await link.quiet(lab.settings.quiet)


async def edited_turn(lab: Lab, link: Link, session: str) -> None:
    """A turn that asks for permission, gets it late, and is refused: the tool waits, and does nothing."""
    text = lab.settings.prompts.edit
    if not text:
        return
    link.lender.permit = "hold"
    turn = lab.begin(link, session, text)
    await link.while_open(turn, lambda: bool(link.lender.held), lab.settings.turn_within)
    await link.quiet(lab.settings.quiet, most=2.0)  # a tool that does not wait shows itself now
    link.lender.permit = "reject"
    link.settle()
    await link.turn_end(turn, lab.settings.turn_within)
    link.lender.permit = "allow"
    await link.quiet(lab.settings.quiet)


async def cancelled_turn(lab: Lab, link: Link, session: str) -> None:
    """A slow turn that is cancelled once it says something; the next turn is clean."""
    name = "prompt.cancel.stops-work"
    turn = lab.begin(link, session, lab.settings.prompts.slow)
    frames = link.judge.bench.seen["wire.utf-8", "agent"]
    await link.while_open(turn, lambda: link.judge.bench.seen["wire.utf-8", "agent"] > frames, lab.settings.turn_within)
    if turn.is_over:
        lab.skip(name, "the turn ended before it was cancelled; give a slower prompt (--prompts)")
        return
    cancel = link.tell("session/cancel", {"sessionId": session})
    try:
        await link.turn_end(turn, lab.settings.turn_within)
    except Unanswered:
        lab.judge(name, "the cancelled prompt was never answered", cancel)
        raise
    took = (turn.answered.time if turn.answered is not None else cancel.time) - cancel.time
    slow = f"the cancelled prompt was answered after {took:.1f} s" if took > lab.settings.stops_within else None
    lab.judge(name, slow, cancel, turn.answered)
    await link.quiet(lab.settings.quiet)
    lab.answered("lint.prompt.after-cancel", await lab.prompt(link, session, lab.settings.prompts.plain))
    await link.quiet(lab.settings.quiet)


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


BAD_IDS = (None, 1, 5)
"""The ids under which input that is no message may be answered; our requests have larger ones."""


async def bare(lab: Lab) -> None:
    """A client that can do nothing: the agent must not use what was not declared."""
    async with lab.link() as link:
        await lab.initialize(link, "capabilities.agent-takes-none", can_do=False)
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
        if lab.lacks(link, "load", name):
            return
        for session in lab.sessions[:1]:
            exchange = await lab.load(link, session)
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


async def terminal_login(lab: Lab) -> None:
    """A client that declares `auth.terminal`: the agent answers, and its terminal logins are well formed."""
    async with lab.link() as link:
        await lab.initialize(link, terminal_login=True)


async def _bad_frame(lab: Lab, link: Link, name: str, data: bytes) -> None:
    wanted = -32700 if name == "jsonrpc.error.parse" else -32600
    sent = link.send_raw(data)

    def answers() -> list[Frame]:
        return [frame for frame in link.replies if frame.number > sent.number and frame.members.get("id") in BAD_IDS]

    with suppress(TimeoutError, Gone):
        await link.until(lambda: bool(answers()), lab.settings.quiet)
    try:  # a process may need a while to end
        await link.ask("_accord.check/alive", {})
    except Gone:
        lab.judge("lint.survives-bad-input", f"the agent ended after {data.decode()}", sent)
        raise Over from None
    if not (answered := answers()):
        lab.judge(name, f"{data.decode()} had no answer", sent)
        return
    said = object_of(answered[0].members.get("error")).get("code")
    lab.judge(name, None if said == wanted else f"{data.decode()} was answered with {said}", sent, answered[0])
