"""The usual path: what every client does, from the handshake to the end, and the additions of version 2."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from accord_check.agent.proposed_scenarios import forked_at_no_cursor
from accord_check.agent.raw_connection import Gone, Link, Over, Unanswered
from accord_check.agent.scenario_context import NOWHERE, ScenarioContext, not_refused
from accord_check.agent.settings import NOTES
from accord_check.conversation import Exchange, Frame, object_of, objects
from accord_check.passive.sessions import id_of, values_of

_META = {"accord.example/check": {"nested": [1, None]}}

ODD_IDS: tuple[Any, ...] = ("text", 0, -3, 2**40, "")


async def healthy(context: ScenarioContext) -> None:
    """The actions of every client: sessions, lists, turns, and the end."""
    async with context.link() as link:
        await context.initialize(link)
        await _unknown_messages(context, link)
        await context.login(link)
        first = await context.new_session(link)
        second = await context.new_session(link, "meta.nothing-assumed", _meta=_META)
        for idle in (second, NOWHERE):  # a cancel without a turn is a notification like any other: nothing answers it
            link.cancel(idle)
        await link.quiet(most=2.0)
        await _listed(context, link)
        if context.settings.prompting:
            await prompted(context, link, first)
            await _settings(context, link, first)
            await edited_turn(context, link, first)
            await cancelled_turn(context, link, first)
            await _loaded(context, link, first)
            context.sessions.append(first)
            await context.plain_turn(link, second, "lint.cancel.idle-harmless")
        await _closed(context, link, second)
        await _deleted(context, link, second)
        context.process_ended(link, await link.close(context.settings.grace), "while it was idle")


async def _unknown_messages(context: ScenarioContext, link: Link) -> None:
    """Requests that the agent does not know are answered under their ids, and such notifications are ignored."""
    custom = [link.call("_accord.check/nothing", {}, id=given) for given in ODD_IDS]
    await _answered(context, link, "extension.request-answered", *custom)
    await _answered(context, link, "lint.request.answered", link.call("accord_check_nothing", {}))
    for name, method in (
        ("extension.notification-unknown", "_accord.check/nothing"),
        ("protocol.unknown-dollar-ignored", "$/accord_check_nothing"),
    ):
        link.notify(method, {})
        await _answered(context, link, name, link.call("_accord.check/alive", {}))


async def _answered(context: ScenarioContext, link: Link, name: str, *asked: Exchange) -> None:
    """Judge that these requests are answered, under this check."""
    for exchange in asked:
        try:
            await link.answer(exchange)
        except (Unanswered, Gone) as error:
            context.judge(name, str(error), exchange.frame)
            raise Over from None
        context.judge(name, None, exchange.answered)


async def _listed(context: ScenarioContext, link: Link) -> None:
    names = ("session.list.needs-no-params", "session.list.empty-list", "session.list.cursor-invalid")
    if context.lacks(link, "list", *names):
        return
    context.answered(names[0], await link.ask("session/list", {}))
    unused = context.folder / "unused"
    unused.mkdir(exist_ok=True)
    exchange = await link.ask("session/list", {"cwd": str(unused)})
    found = list(objects(exchange.fields.get("sessions")))
    wrong = f"{len(found)} sessions in a folder without any" if found else None
    if exchange.succeeded:
        context.judge(names[1], wrong, exchange)
    else:
        context.answered(names[1], exchange)
    exchange = await link.ask("session/list", {"cursor": "accord-check-no-such-cursor"})
    context.refused(names[2], exchange, "a cursor that the agent never gave was accepted")


async def _settings(context: ScenarioContext, link: Link, session: str) -> None:
    """Set each mode and each option to its present value, so that nothing changes for later steps."""
    opened = link.judge.conversation.sessions[session].opened.fields
    modes = object_of(opened.get("modes"))
    if isinstance(current := modes.get("currentModeId"), str):
        await _moded(context, link, session, modes, current)
    else:
        reason = "the agent offers no modes" if context.version == 1 else "version 2 has no modes"
        context.skip("mode.set.any-time", reason)
    selects = [option for option in objects(opened.get("configOptions")) if values_of(option)]
    for option in selects:
        asked = _setting(context, session, option, option.get("currentValue"))
        context.answered("config.set.any-time", await link.ask("session/set_config_option", asked))
    for option in selects[:1]:
        asked = _setting(context, session, option, "accord-check-no-such-value")
        accepted = f"the option {id_of(option)!r} took a value that it does not list"
        context.refused("config.set.invalid-refused", await link.ask("session/set_config_option", asked), accepted)
    if not selects:
        context.skip(("config.set.any-time", "config.set.invalid-refused"), "the agent offers no select options")


async def _moded(context: ScenarioContext, link: Link, session: str, modes: dict[str, Any], current: str) -> None:
    """Set each mode, and the first one again. A mode may be refused here: it may need a trusted folder."""
    others = [mode.get("id") for mode in objects(modes.get("availableModes")) if mode.get("id") != current]
    for mode in others:
        exchange = await link.ask("session/set_mode", {"sessionId": session, "modeId": mode})
        if exchange.succeeded:
            context.answered("mode.set.any-time", exchange)
    exchange = await link.ask("session/set_mode", {"sessionId": session, "modeId": current})
    context.answered("mode.set.any-time", exchange)


def _setting(context: ScenarioContext, session: str, option: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = {"type": "id"} if context.version == 2 else {}
    return {"sessionId": session, "configId": id_of(option), "value": value, **kind}


async def _closed(context: ScenarioContext, link: Link, session: str) -> None:
    name = "session.close.cancels-work"
    if context.lacks(link, "close", name):
        return
    if not context.settings.prompting:
        await link.ask("session/close", {"sessionId": session})
        context.skip(name, "the profile sends no prompts")
        return
    link.forget(session)
    turn = context.begin(link, session, context.settings.prompts.slow)
    await link.quiet(most=1.0)
    closing = await link.ask("session/close", {"sessionId": session})
    try:
        await link.turn_end(turn, context.settings.answer_within)
    except Unanswered as error:
        context.judge(name, f"{error} after the session was closed", closing.frame)
        return
    # A turn that ends on its own may cross the close on its way: its end then comes before the answer to the close.
    end, read = turn.answered or closing.frame, closing.answered or closing.frame
    took = end.time - closing.frame.time
    crosses = turn.reason != "cancelled" and end.number < read.number and took < context.settings.stops_within
    if end.number < closing.frame.number or crosses:
        context.skip(name, "the turn ended before the session was closed")
        return
    verdict = turn.reason == "cancelled" or f"the turn of a closed session ended with {turn.reason!r}"
    context.judge(name, verdict, closing.frame, turn.answered)


async def _deleted(context: ScenarioContext, link: Link, session: str) -> None:
    name = "session.delete.idempotent"
    if context.lacks(link, "delete", name):
        return
    if not context.settings.allow_delete:
        context.skip(name, "deleting is not allowed; give --allow-delete")
    else:
        await link.ask("session/delete", {"sessionId": session})
        context.answered(name, await link.ask("session/delete", {"sessionId": session}))
        if context.offers(link, "list"):
            await link.ask("session/list", {})


async def _loaded(context: ScenarioContext, link: Link, session: str) -> None:
    """Load a session again, and continue in it; load one that does not exist."""
    names = ("session.load.replays-everything", "session.load.goes-on", "lint.load.unknown-refused")
    if context.lacks(link, "load", *names):
        return
    exchange = await context.load(link, NOWHERE)
    context.refused("lint.load.unknown-refused", exchange, "a session that does not exist was loaded")
    if context.offers(link, "close"):
        await link.ask("session/close", {"sessionId": session})
    link.forget(session)
    exchange = await context.load(link, session)
    await link.quiet(context.settings.quiet * 2)
    if not context.answered("session.load.replays-everything", exchange):
        return
    kinds = {kind.removesuffix("_chunk") for kind in link.update_kinds(session)}
    missing = [kind for kind in ("user_message", "agent_message") if kind not in kinds]
    if missing:
        missed = f"the replay has no {missing[0]}{'_chunk' if context.version == 1 else ''}"
        context.judge("session.load.replays-everything", missed, exchange)
    await context.plain_turn(link, session, "session.load.goes-on")
    await link.quiet()


async def prompted(context: ScenarioContext, link: Link, session: str) -> None:
    """Prompts of text and of links, and those of the settings."""
    prompts = context.settings.prompts
    context.answered("prompt.content.agent-takes-text", await context.prompt(link, session, prompts.plain))
    await link.quiet()
    uri = (context.folder / NOTES).as_uri()
    named = {"type": "resource_link", "name": NOTES, "uri": uri}
    linked = await context.prompt(link, session, "What is the name of this file? Answer with the name.", more=[named])
    context.answered("prompt.content.agent-takes-links", linked)
    for text in prompts.more:
        await context.prompt(link, session, text)
    await link.quiet()


async def edited_turn(context: ScenarioContext, link: Link, session: str) -> None:
    """A turn that asks for permission, gets it late, and is refused: the tool waits, and does nothing."""
    text = context.settings.prompts.edit
    if not text:
        return
    link.services.permit = "hold"
    turn = context.begin(link, session, text)
    await link.while_open(turn, lambda: bool(link.services.held))
    await link.quiet(most=2.0)  # a tool that does not wait reveals itself now
    link.services.permit = "reject"
    link.settle()
    await link.turn_end(turn)
    link.services.permit = "allow"
    await link.quiet()


async def cancelled_turn(context: ScenarioContext, link: Link, session: str) -> None:
    """A slow turn that is cancelled after its first output; the next turn is clean."""
    name = "prompt.cancel.stops-work"
    turn = context.begin(link, session, context.settings.prompts.slow)
    frames = link.judge.tally.seen["wire.utf-8", "agent"]
    await link.while_open(turn, lambda: link.judge.tally.seen["wire.utf-8", "agent"] > frames)
    if turn.is_over:
        context.skip(name, "the turn ended before it was cancelled; give a slower prompt (--prompts)")
        return
    cancel = link.cancel(session)
    try:
        await link.turn_end(turn)
    except Unanswered:
        context.judge(name, "the cancelled prompt was never answered", cancel)
        raise
    took = (turn.answered.time if turn.answered is not None else cancel.time) - cancel.time
    verdict = took <= context.settings.stops_within or f"the cancelled prompt was answered after {took:.1f} s"
    context.judge(name, verdict, cancel, turn.answered)
    await link.quiet()
    await context.plain_turn(link, session, "lint.prompt.after-cancel")
    await link.quiet()


async def second_version(context: ScenarioContext) -> None:
    """Requests of version 2 at their limits, in one session."""
    async with context.logged_in() as link:
        session = await context.new_session(link)
        empty: dict[str, Any] = {"sessionId": session, "prompt": []}
        await context.refuses(link, "lint.prompt.empty-refused", "session/prompt", empty)
        cursor = {"type": "_accord.check/no-such-cursor"}
        again = context.place(session, replayFrom=cursor)
        await context.refuses(link, "lint.resume.unknown-cursor", "session/resume", again)
        await forked_at_no_cursor(context, link, session)
        await context.load(link, session)  # there is nothing to replay
        await context.resume(link, session)
        gone = {"sessionId": session, "toolCallId": "accord-check-no-such-call"}
        await context.refuses(link, "lint.tool.cancel-unknown", "tool_call/cancel", gone)
        closing = await link.ask("session/close", {"sessionId": NOWHERE})
        context.answered("lint.close.unknown-succeeds", closing, "the close of a session that is not open was refused")
        if context.settings.prompting:
            if not context.lacks(link, "skill", "lint.skill.unknown-refused"):
                skill = {"sessionId": session, "prompt": [{"type": "skill", "name": "accord-check-no-such-skill"}]}
                await context.refuses(link, "lint.skill.unknown-refused", "session/prompt", skill)
            await _two_prompts(context, link, session)


async def _two_prompts(context: ScenarioContext, link: Link, session: str) -> None:
    """A prompt while another is at work: it waits or is inserted, and a cancel ends both."""
    first = context.begin(link, session, context.settings.prompts.slow)
    with suppress(TimeoutError):  # another check judges an agent that never reports it
        await link.until(
            lambda: any(it.state == "running" for it in link.states(session)), context.settings.stops_within
        )
    second = context.begin(link, session, context.settings.prompts.plain)
    await link.quiet(most=1.0)
    link.cancel(session)
    await link.turn_end(first)
    await link.turn_end(second)
    await link.quiet()


async def idempotency_keys(context: ScenarioContext) -> None:
    """Prompts with idempotency keys: retried, at the same moment, and malformed."""
    async with context.logged_in() as link:
        await _retried(context, link, await context.new_session(link))
        await _at_once(context, link, await context.new_session(link))
        await _malformed_keys(context, link, await context.new_session(link))


async def _retried(context: ScenarioContext, link: Link, session: str) -> None:
    text = context.settings.prompts.plain
    first = await link.turn_end(context.begin(link, session, text, key="accord-check-retry"))
    if not first.exchange.succeeded:  # another check judges an agent that accepts no prompt
        return
    retry = context.begin(link, session, text, key="accord-check-retry")
    await link.answer(retry.exchange)
    await link.quiet()
    name, given, original = "lint.prompt.key-retried", *(it.exchange.fields.get("messageId") for it in (retry, first))
    if context.answered(name, retry.exchange, "the retry of a prompt was refused"):
        other = None if given == original else f"the retry was answered with {given!r}, not with {original!r}"
        if problem := _inserted_twice(link, session) or other:
            context.judge(name, problem, first.frame, retry.frame, retry.exchange.answered)


async def _at_once(context: ScenarioContext, link: Link, session: str) -> None:
    text = context.settings.prompts.plain
    both = [context.begin(link, session, text, key="accord-check-pair") for _ in range(2)]
    for turn in both:
        await link.answer(turn.exchange)
    taken = [turn for turn in both if turn.exchange.succeeded]
    if not taken:
        return
    await link.turn_end(taken[0])
    await link.quiet()
    given = {str(turn.exchange.fields.get("messageId")) for turn in taken}
    other = f"two prompts with one key were answered with {' and '.join(sorted(given))}" if len(given) > 1 else None
    problem = _inserted_twice(link, session) or other
    context.judge("lint.prompt.key-at-once", problem, *(turn.frame for turn in both), taken[-1].exchange.answered)


def _inserted_twice(link: Link, session: str) -> str | None:
    messages = link.user_messages(session)
    return f"prompts with one key inserted the messages {', '.join(map(str, messages))}" if len(messages) > 1 else None


async def _malformed_keys(context: ScenarioContext, link: Link, session: str) -> None:
    for key, what in (("", "an empty key"), (7, "the key 7"), ("k" * 256, "a key of 256 characters")):
        turn = context.begin(link, session, context.settings.prompts.plain, key=key)
        exchange = await link.answer(turn.exchange)
        problem = not_refused(exchange)
        verdict = problem is None or f"{problem}, with {what}"
        context.judge("lint.prompt.key-malformed", verdict, exchange)
        if exchange.succeeded:
            await link.turn_end(turn)


async def resumed_at_work(context: ScenarioContext) -> None:
    """A session that is resumed, with its past, while it works: the work continues."""
    name = "lint.resume.work-goes-on"
    async with context.logged_in() as link:
        session = await context.new_session(link)
        turn = context.begin(link, session, context.settings.prompts.slow)
        states = link.states(session)
        await link.while_open(turn, lambda: any(it.state == "running" for it in states))
        await link.quiet(most=1.0)  # so that the session has a past
        if turn.is_over:
            context.skip(name, "the turn ended before the session was resumed; give a slower prompt (--prompts)")
            return
        exchange = await context.load(link, session)
        if not context.answered(name, exchange, "a session at work could not be resumed"):
            return
        since = [it for it in states if it.frame.number > exchange.frame.number]
        if turn.end is not None and turn.reason not in (None, "cancelled"):
            context.skip(name, "the turn ended while the session was resumed; give a slower prompt (--prompts)")
            return
        wrong = None
        if turn.reason == "cancelled":
            wrong = "the work ended as cancelled when its session was resumed"
        elif since and since[-1].state == "idle":
            wrong = "the state idle was told of a session at work"
        cancel = link.cancel(session)
        if wrong is None:
            await link.turn_end(turn)
            wrong = None if turn.reason == "cancelled" else f"the work ended with {turn.reason!r} at session/cancel"
        if wrong is not None:
            context.judge(name, wrong, exchange.frame, cancel, turn.answered)
        await link.quiet()


BAD_IDS = (None, 1, 5)
"""The ids under which input that is no message may be answered; our requests have larger ones."""


async def bare(context: ScenarioContext) -> None:
    """A client without capabilities: the agent must not use undeclared ones."""
    async with context.link() as link:
        await context.initialize(link, "capabilities.agent-takes-none", can_do=False)
        await context.login(link)
        session = await context.new_session(link)
        if context.settings.prompting:
            await context.plain_turn(link, session, "prompt.content.agent-takes-text")
            await link.quiet()


async def latest(context: ScenarioContext) -> None:
    """A client of the future: the agent answers with a version of its own."""
    async with context.link() as link:
        info = {"name": "accord-check", "version": "1"}
        exchange = await link.ask(
            "initialize",
            # A router of two versions reads it as version 2, so it has the members of both.
            {"protocolVersion": 65535, "clientCapabilities": {}, "clientInfo": info, "capabilities": {}, "info": info},
            context.settings.start_within,
        )
        context.answered("lint.initialize.succeeds", exchange, "version 65535 was refused, not answered with another")


async def garbage(context: ScenarioContext) -> None:
    """Input that is no message: the agent answers it or ignores it, and continues."""
    async with context.link() as link:
        await context.initialize(link)
        for name, data in (
            ("jsonrpc.error.parse", b'{"jsonrpc":"2.0","id":1,'),
            ("jsonrpc.error.invalid-request", b"[]"),
            ("jsonrpc.error.invalid-request", b'{"jsonrpc":"2.0","id":5,"method":7}'),
        ):
            await _bad_frame(context, link, name, data)
        link.send({"id": 9_999, "result": {}})
        exchange = await link.ask("_accord.check/alive", {})
        context.judge("lint.survives-bad-input", None, exchange.answered)


async def restarted(context: ScenarioContext) -> None:
    """A second process: a session of the first is loaded, and continues."""
    async with context.logged_in() as link:
        name = "lint.load.after-restart"
        if context.lacks(link, "load", name):
            return
        for session in context.sessions[:1]:
            exchange = await context.load(link, session)
            if context.answered(name, exchange, "a session of an earlier process cannot be loaded"):
                await link.quiet()
                await context.plain_turn(link, session, "session.load.goes-on")
                await link.quiet()


async def ended_in_turn(context: ScenarioContext) -> None:
    """The end of the input in the middle of a turn."""
    async with context.logged_in() as link:
        session = await context.new_session(link)
        context.begin(link, session, context.settings.prompts.slow)
        await link.quiet(most=1.0)
        context.process_ended(link, await link.close(context.settings.grace), "in a turn")


async def terminal_login(context: ScenarioContext) -> None:
    """A client that declares `auth.terminal`: the agent answers, and its terminal logins are well formed."""
    async with context.link() as link:
        await context.initialize(link, terminal_login=True)


async def _bad_frame(context: ScenarioContext, link: Link, name: str, data: bytes) -> None:
    wanted = -32700 if name == "jsonrpc.error.parse" else -32600
    sent = link.send_raw(data)

    def answers() -> list[Frame]:
        return [frame for frame in link.replies if frame.number > sent.number and frame.members.get("id") in BAD_IDS]

    with suppress(TimeoutError, Gone):
        await link.until(lambda: bool(answers()), context.settings.quiet)
    try:  # a process may need a while to end
        await link.ask("_accord.check/alive", {})
    except Gone:
        context.judge("lint.survives-bad-input", f"the agent ended after {data.decode()}", sent)
        raise Over from None
    if not (answered := answers()):
        context.judge(name, f"{data.decode()} had no answer", sent)
        return
    said = object_of(answered[0].members.get("error")).get("code")
    context.judge(name, said == wanted or f"{data.decode()} was answered with {said}", sent, answered[0])
