"""What our agent does in the first turn of each scenario, and what is judged by it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from accord_check.agent.link import Gone, Over, Unanswered
from accord_check.client import lent_files, lent_terminals
from accord_check.client.played import Played
from accord_check.client.probes import probed
from accord_check.client.questions import asks_permission, permitted, questioned
from accord_check.conversation import Frame, object_of

BAD_ID = 4_999
"""The id of a message that is malformed."""


class Stage(NamedTuple):
    """The surroundings of one scenario."""

    folder: Path
    """The scratch folder. Files are only made in it."""
    interrupt: Callable[[], None] | None
    """Sends Ctrl-C to the client; None for a client that was started by hand."""


async def usual(played: Played, stage: Stage) -> None:
    """Every update, messages that no client knows, questions, files and terminals, in one turn."""
    await played.prompted()
    await played.answers_custom()
    await played.owed(played.call("accord_check_nothing", {}), "lint.client.answers")
    await probed(played)
    await permitted(played)
    await questioned(played)
    if played.version == 1:  # version 2 lends neither files nor terminals
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
    with suppress(TimeoutError, Gone):
        await played.until(lambda: bool(played.asked), played.settings.start_within)
    if not played.asked:
        return
    wrong = None
    try:
        await played.until(lambda: len(played.asked) > 1, played.settings.end_within)
        wrong = "the client went on after the answer named version 65535"
    except TimeoutError:
        wrong = "the client left the connection open, after the answer named version 65535"
    except Gone:
        pass
    played.judged(name, wrong, played.asked[-1])


async def large(played: Played, _: Stage) -> None:
    """Messages of 200 kB and of 5 MB, and thousands of small ones."""
    await played.prompted()
    await played.answers_custom()
    for size in (200_000, 5_000_000):
        sent = played.say("much of this text is the same. " * (size // 31))
        await played.alive("lint.client.takes-large-messages", f"a message of {size:,} bytes", sent)
    for _number in range(2_000):
        played.say(".")
    await played.alive("lint.client.takes-many-updates", "2,000 updates at once")
    await _finished(played)


async def garbage(played: Played, _: Stage) -> None:
    """Lines that are no message, and a message that is malformed."""
    await played.prompted()
    await played.answers_custom()
    what = "a request whose method is 7"
    sent = played.send({"id": BAD_ID, "method": 7})
    await played.alive("lint.client.survives-noise", what, sent)

    def answers() -> list[Frame]:
        return [frame for frame in played.replies if frame.members.get("id") in (BAD_ID, None)]

    with suppress(TimeoutError, Gone):
        await played.until(lambda: bool(answers()), played.settings.quiet)
    answered = next(iter(answers()), None)
    code = object_of(answered.members.get("error")).get("code") if answered is not None else None
    wrong = None if code == -32600 else f"{what} " + ("had no answer" if code is None else f"was refused with {code}")
    played.judged("jsonrpc.error.invalid-request", wrong, sent, answered)
    if played.arrival.starts_process:
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
    # A question that crosses the cancel on its way is not open when the client cancels.
    await played.alive("lint.client.takes-updates", "a question")
    with suppress(Unanswered):  # a client that answers without its user does so now
        await played.answer(question, played.settings.quiet)
    if stage.interrupt is not None:
        stage.interrupt()
    try:
        await played.until(lambda: _has_cancelled(played), played.settings.asks_within)
    except (TimeoutError, Gone) as error:
        why = "ended without" if isinstance(error, Gone) else "sent no"
        played.skip(name, f"the client {why} session/cancel after Ctrl-C")
        played.finish()
        raise Over from None
    await played.quiet(3 * played.settings.quiet, 3.0)
    if played.end is not None:
        played.skip(name, "the client ended the connection with session/cancel")
        raise Over
    sent = played.update("tool_call_update", toolCallId="check-cancelled", status="failed")
    await played.alive(name, "an update that followed session/cancel", sent)
    with suppress(Unanswered):
        await played.answer(question, played.settings.asks_within)
    await _finished(played, "cancelled")


def _has_cancelled(played: Played) -> bool:
    return any(frame.members.get("method") == "session/cancel" for frame in played.asked)


async def gone(played: Played, _: Stage) -> None:
    """The agent's process ends in the middle of a turn."""
    await played.prompted()
    played.say("I am about to fail. ")
    played.arrival.complain(b"fatal: the model is gone\n")
    played.arrival.exit(3)
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
    is_ours = played.session in played.agent.sessions
    wrong = None if is_ours else f"after {what} the client prompts in {played.session!r}, which it was not given"
    played.judged(name, wrong, played.last)


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
