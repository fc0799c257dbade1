"""The scenarios: each is one start of the client, with a part that our agent plays, and what happens in its first turn.

A client that sends a prompt and ends is enough for all of them. What it does not do is not exercised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from accord.check.agent.link import Gone, Over, Unanswered
from accord.check.client import lent_files, lent_terminals
from accord.check.client.part import EVERYTHING, OPTION, Part
from accord.check.client.played import Played
from accord.check.client.probes import probed
from accord.check.client.questions import asks_permission, permitted, questioned
from accord.check.client.settings import Profile
from accord.check.conversation import object_of

BOTH: tuple[Profile, ...] = ("smoke", "default")


class Stage(NamedTuple):
    """The surroundings of one scenario."""

    folder: Path
    """The scratch folder. Files are only made in it."""
    interrupt: Callable[[], None] | None
    """Sends Ctrl-C to the client; None for a client that was started by hand."""


class Scenario(NamedTuple):
    """One start of the client."""

    name: str
    shows: str
    play: Callable[[Played, Stage], Awaitable[None]]
    part: Part = Part()
    profiles: tuple[Profile, ...] = ("default",)
    ends: bool = True
    """Whether the client is expected to end by itself afterwards."""


async def usual(played: Played, stage: Stage) -> None:
    """Every update, messages that no client knows, questions, files and terminals, in one turn."""
    await played.prompted()
    await played.answers_custom()
    await played.owed(played.call("accord_check_nothing", {}), "lint.client.answers")
    await probed(played)
    await permitted(played)
    await questioned(played)
    await _lent(played, stage)
    sent = played.say("The checks are done.")
    await played.alive("lint.client.stays-in-turn", "the last message of the turn", sent)
    await _finished(played)


async def _lent(played: Played, stage: Stage) -> None:
    folder = played.folder
    if not folder.is_relative_to(stage.folder):
        reason = "the client's session works outside of the scratch folder, where the checks make no files"
        for name in (*lent_files.READS, "files.write.creates", *lent_terminals.CHECKS):
            played.skip(name, reason)
        return
    outside = stage.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    await lent_files.read(played, folder, outside)
    await lent_files.written(played, folder)
    await lent_terminals.ran(played, folder)


async def bare(played: Played, _: Stage) -> None:
    """An agent that declares nothing: the client uses nothing, and works."""
    await _reaches_prompt(played, "capabilities.client-any-combination", "an agent without capabilities")
    played.say("I can do nothing else.")
    await _finished(played)


async def future(played: Played, _: Stage) -> None:
    """Capabilities that do not exist yet."""
    await _reaches_prompt(played, "capabilities.unknown-harmless", "unknown capabilities")
    await _finished(played)


async def odd_option(played: Played, _: Stage) -> None:
    """An option of a type that does not exist yet."""
    await _reaches_prompt(played, "config.unknown-type-ignored", "an option of an unknown type")
    await _finished(played)


async def odd_category(played: Played, _: Stage) -> None:
    """An option of an unknown category, and one without a category."""
    await _reaches_prompt(played, "config.category.unknown-accepted", "options of an unknown and of no category")
    await _finished(played)


async def late(played: Played, _: Stage) -> None:
    """Answers that come late, and a turn that takes its time."""
    name = "lint.client.waits"
    await _reaches_prompt(played, name, f"answers that came after {played.settings.late:g} s")
    await played.quiet(played.settings.late, played.settings.late)
    if played.end is not None:
        played.judged(name, f"{played.end.detail} before the prompt was answered", played.last)
        raise Over
    await _finished(played)


async def version(played: Played, _: Stage) -> None:
    """A version that the client cannot speak: it leaves."""
    name = "initialize.version.client-leaves"
    with suppress(TimeoutError):
        await played.until(lambda: played.judge.conversation.initialize is not None, played.settings.start_within)
        opening = played.last
        with suppress(Gone):
            await played.until(lambda: played.last is not opening and _is_request(played), played.settings.end_within)
            played.judged(name, "the client went on after the answer named version 65535", played.last)
            return
        played.judged(name, None, opening)
        return
    if played.judge.conversation.initialize is not None:
        played.judged(name, "the client left the connection open, after the answer named version 65535", played.last)


def _is_request(played: Played) -> bool:
    last = played.last
    return last is not None and last.by == "client" and isinstance(last.members.get("method"), str)


async def large(played: Played, _: Stage) -> None:
    """Messages of 200 kB and of 5 MB, and thousands of small ones."""
    await played.prompted()
    await played.answers_custom()
    for size in (200_000, 5_000_000):
        sent = played.say("much of this text is the same. " * (size // 31))
        await played.alive("lint.client.takes-large-messages", f"a message of {size:,} bytes", sent)
    for _number in range(2_000):
        played.say(".")
    await played.alive("lint.client.takes-large-messages", "2,000 updates at once")
    await _finished(played)


async def garbage(played: Played, _: Stage) -> None:
    """Lines that are no message, and a message that is malformed."""
    await played.prompted()
    await played.answers_custom()
    exchange_id = 4_999
    sent = played.send({"id": exchange_id, "method": 7})
    answered = None
    with suppress(TimeoutError, Gone):
        await played.until(lambda: played.last is not sent, played.settings.quiet)
        answered = played.last
    code = object_of(answered.members.get("error")).get("code") if answered is not None else None
    what = "a request whose method is 7"
    wrong = None if code == -32600 else f"{what} " + ("had no answer" if code is None else f"was refused with {code}")
    played.judged("jsonrpc.error.invalid-request", wrong, sent, answered)
    await played.alive("lint.client.survives-noise", what, sent)
    sent = played.send_raw(b"Loading the model...")
    await played.alive("lint.client.survives-noise", "a line of text on standard output", sent)
    await _finished(played)


async def cancelled(played: Played, stage: Stage) -> None:
    """Ctrl-C in a turn with an open question. Updates still come, and the turn ends as cancelled."""
    name = "prompt.cancel.late-updates-taken"
    await played.prompted()
    await played.answers_custom()
    played.say("Press Ctrl-C, or cancel this turn in another way. ")
    await played.alive("lint.client.takes-updates", "a message")
    question = asks_permission(played, "check-cancelled", "Something to cancel")
    if stage.interrupt is not None:
        stage.interrupt()
    session = played.judge.conversation.sessions.get(played.session or "")
    try:
        await played.until(lambda: session is None or session.cancelled is not None, played.settings.asks_within)
    except (TimeoutError, Gone) as error:
        why = "ended without" if isinstance(error, Gone) else "sent no"
        played.skip(name, f"the client {why} session/cancel after Ctrl-C")
        played.finish()
        raise Over from None
    await played.quiet(played.settings.quiet, 2.0)
    if played.end is not None:
        played.skip(name, "the client ended the connection with session/cancel")
        raise Over
    sent = played.update("tool_call_update", toolCallId="check-cancelled", status="failed")
    await played.alive(name, "an update that followed session/cancel", sent)
    with suppress(Unanswered):
        await played.answer(question, played.settings.asks_within)
    await _finished(played, "cancelled")


async def gone(played: Played, _: Stage) -> None:
    """The agent's process ends in the middle of a turn."""
    await played.prompted()
    played.say("I am about to fail. ")
    played.relayed.complain(b"fatal: the model is gone\n")
    played.relayed.exit(3)
    with suppress(TimeoutError, Gone):
        await played.until(lambda: False, played.settings.end_within)


async def _reaches_prompt(played: Played, name: str, what: str) -> None:
    """Wait for a prompt, and judge by this check that there is one after the answers of this scenario."""
    try:
        await played.prompted()
    except Over:
        if _answered(played):
            ended = played.end.detail if played.end is not None else "the client sent no prompt"
            played.judged(name, f"{ended} after {what}", played.last)
        raise
    played.judged(name, None, played.last)


def _answered(played: Played) -> bool:
    """Whether the client got as far as this part's peculiarity."""
    return played.judge.conversation.is_initialized


async def _finished(played: Played, reason: str = "end_turn") -> None:
    """End the turn; judge that the client was still there."""
    name = "lint.client.stays-in-turn"
    if played.end is not None:
        played.judged(name, f"{played.end.detail} before its prompt was answered", played.last)
        raise Over
    played.judged(name, None)
    played.finish(reason)


_ODD_TYPE: dict[str, Any] = {
    "id": "odd",
    "name": "Odd",
    "type": "_accord.check/slider",
    "currentValue": 3,
    "from": 1,
    "to": 5,
}
_ODD_CATEGORY: list[dict[str, Any]] = [
    {**OPTION, "id": "plain", "category": None},
    {**OPTION, "id": "odd", "category": "_accord.check/category"},
]
_FUTURE: dict[str, Any] = {
    **EVERYTHING,
    "_accord.check/future": {"deep": [1, {"er": None}]},
    "accordCheckFuture": True,
    "sessionCapabilities": {**EVERYTHING["sessionCapabilities"], "accordCheckFuture": {}},
}

SCENARIOS = (
    Scenario("usual", "updates, questions, files, terminals, and unknown messages", usual, profiles=BOTH),
    Scenario("bare", "an agent without capabilities", bare, Part(capabilities={}, session={}), BOTH),
    Scenario("version", "a version that no client speaks", version, Part(answer={"protocolVersion": 65535}), BOTH),
    Scenario("future", "capabilities that do not exist yet", future, Part(capabilities=_FUTURE)),
    Scenario("odd option", "an option of an unknown type", odd_option, Part(session={"configOptions": [_ODD_TYPE]})),
    Scenario(
        "odd category", "options of unknown categories", odd_category, Part(session={"configOptions": _ODD_CATEGORY})
    ),
    Scenario("late", "answers that come late", late, Part(late=True)),
    Scenario("large", "large messages, and many", large),
    Scenario("garbage", "lines that are no message", garbage),
    Scenario("cancelled", "Ctrl-C in a turn", cancelled),
    Scenario("gone", "the agent's process ends in a turn", gone, ends=False),
)
"""Every scenario, in the order in which they run."""
