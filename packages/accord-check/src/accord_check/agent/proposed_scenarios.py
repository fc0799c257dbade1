"""Scenarios of proposed features: options of a session before it exists, and session cursors."""

from __future__ import annotations

from typing import Any

from accord.errors import NOT_FOUND
from accord_check.agent.raw_connection import Link
from accord_check.agent.scenario_context import NOWHERE, ScenarioContext
from accord_check.conversation import Exchange, objects
from accord_check.passive.sessions import id_of, values_of


async def session_options(context: ScenarioContext) -> None:
    """The options of a session before it exists, and sessions that begin with other values."""
    names = ("agree", "open-nothing", "unknown-session", "initial-applied", "initial-ignored", "initial-twice")
    async with context.logged_in() as link:
        if context.lacks(link, "options", *(f"lint.options.{name}" for name in names)):
            return
        await _options_before(context, link)
        session = await context.new_session(link)
        opened = link.judge.conversation.sessions[session].opened
        before = await link.ask("session/options", {"cwd": str(context.folder)})
        if context.answered("lint.options.agree", before):
            wrong = _other_options(before.fields, opened.fields)
            context.judge("lint.options.agree", wrong, opened.answered, before.answered)
        await _initial_options(context, link, list(objects(opened.fields.get("configOptions"))))


async def _options_before(context: ScenarioContext, link: Link) -> None:
    """Check the options of a folder without sessions, and of a session that does not exist."""
    folder = context.folder / "options"
    folder.mkdir(exist_ok=True)
    asked = await link.ask("session/options", {"cwd": str(folder)})
    if context.answered("lint.options.open-nothing", asked) and context.offers(link, "list"):
        found = await link.ask("session/list", {"cwd": str(folder)})
        listed = list(objects(found.fields.get("sessions")))
        verdict = not listed or f"session/options made the session {listed[0].get('sessionId')!r}"
        context.judge("lint.options.open-nothing", verdict, asked.frame, found.answered)
    unknown = {"cwd": str(folder), "sessionId": NOWHERE}
    await context.refuses(link, "lint.options.unknown-session", "session/options", unknown, NOT_FOUND)


def _other_options(before: dict[str, Any], opened: dict[str, Any]) -> str | None:
    """Return the difference between the options of two answers; None if they are the same."""
    one, other = ({id_of(it): it for it in objects(fields.get("configOptions"))} for fields in (before, opened))
    if one.keys() != other.keys():
        return f"session/options named the options {sorted(one, key=str)}, and the session has {sorted(other, key=str)}"
    changed = [given for given, option in one.items() if option != other[given]]
    return f"the option {changed[0]!r} was another one in the session" if changed else None


async def _initial_options(context: ScenarioContext, link: Link, options: list[dict[str, Any]]) -> None:
    """Check sessions that begin with a value that is listed, with ones that are not, and with one twice."""
    choices = [(it, [value for value in values_of(it) or [] if value != it.get("currentValue")]) for it in options]
    chosen = next(((option, others[0]) for option, others in choices if others), None)
    if chosen is None:
        for name in ("initial-applied", "initial-ignored", "initial-twice"):
            context.skip(f"lint.options.{name}", "the agent offers no option with two values")
        return
    option, value = chosen
    wanted = _initial(context, id_of(option), value)
    opened = await link.ask("session/new", context.place(configOptions=[wanted]))
    if context.answered("lint.options.initial-applied", opened):
        reported = _reported_value(opened, option)
        verdict = reported == value or f"the option {id_of(option)!r} was to be {value!r}, and is {reported!r}"
        context.judge("lint.options.initial-applied", verdict, opened)
    odd = [_initial(context, "accord-check-no-such-option"), _initial(context, id_of(option))]
    opened = await link.ask("session/new", context.place(configOptions=odd))
    if context.answered("lint.options.initial-ignored", opened):
        reported = _reported_value(opened, option)
        verdict = reported in (values_of(option) or ()) or f"the option {id_of(option)!r} became {reported!r}"
        context.judge("lint.options.initial-ignored", verdict, opened)
    twice = context.place(configOptions=[wanted, wanted])
    await context.refuses(link, "lint.options.initial-twice", "session/new", twice)


def _initial(context: ScenarioContext, option: Any, value: Any = "accord-check-no-such-value") -> dict[str, Any]:
    return {"configId": option, "value": value, **({"type": "id"} if context.version == 2 else {})}


def _reported_value(opened: Exchange, option: dict[str, Any]) -> Any:
    """The value of this option in an answer that opens a session."""
    reported = [it for it in objects(opened.fields.get("configOptions")) if id_of(it) == id_of(option)]
    return reported[0].get("currentValue") if reported else None


async def session_cursors(context: ScenarioContext) -> None:
    """A session of two turns that is forked at a cursor between them."""
    name = "lint.fork.at-cursor"
    async with context.logged_in() as link:
        if context.lacks(link, "fork", name):
            return
        session = await context.new_session(link)
        await context.prompt(link, session, context.settings.prompts.plain)
        await link.quiet()
        before = list(link.messages(session))
        await context.prompt(link, session, context.settings.prompts.plain)
        await link.quiet()
        cursors = link.cursors(session)
        at = next((given for given, anchor in cursors.items() if _is_between(anchor, before)), None)
        if at is None:
            said = "between two turns " if cursors else ""
            context.skip(name, f"the agent announced no cursor {said}at which the session can be forked")
            return
        fork = await link.ask("session/fork", context.place(session, cursorId=at), context.settings.turn_within)
        made = fork.fields.get("sessionId")
        if context.answered(name, fork) and isinstance(made, str) and context.offers(link, "load"):
            await _cut(context, link, made, fork)
        if context.version == 1:
            await forked_at_no_cursor(context, link, session)


def _is_between(anchor: dict[str, Any], before: list[tuple[str, str | None]]) -> bool:
    """Whether a cursor lies between the messages of the first turn, which are `before`, and those of the second."""
    speaker, position = str(anchor.get("type")).removesuffix("_message"), anchor.get("position")
    is_early = (speaker, anchor.get("messageId")) in before
    return (speaker, position, is_early) in (("agent", "after", True), ("user", "before", False))


async def _cut(context: ScenarioContext, link: Link, made: str, fork: Exchange) -> None:
    """Judge that a fork between two turns has the messages of the first one only."""
    if context.offers(link, "close"):
        await link.ask("session/close", {"sessionId": made})
    link.forget(made)
    loaded = await context.load(link, made)
    await link.quiet()
    if context.answered("lint.fork.at-cursor", loaded, "the fork could not be loaded"):
        found = len(link.user_messages(made))
        verdict = found == 1 or f"the fork has {found} messages of the user, and 1 lies before the cursor"
        context.judge("lint.fork.at-cursor", verdict, fork, loaded.answered)


async def forked_at_no_cursor(context: ScenarioContext, link: Link, session: str) -> None:
    """A fork at a cursor that the agent never announced."""
    if not context.lacks(link, "fork", "lint.fork.unknown-cursor"):
        cut = context.place(session, cursorId="accord-check-no-such-cursor")
        await context.refuses(link, "lint.fork.unknown-cursor", "session/fork", cut)
