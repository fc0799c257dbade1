"""The scenarios: each is one start of the client, with a part that our agent plays, and what happens in its first turn.

A client that sends a prompt and ends is enough for all of them. What it does not do is not exercised. A client without
a user answers questions (permissions, forms), too, or says that it cannot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from accord_check.agent.raw_connection import Gone, Over, Unanswered
from accord_check.client.fake_agent import EVERYTHING, EVERYTHING_V2, INFO, OPTION, Part
from accord_check.client.files_and_terminals import READ_CHECKS, TERMINAL_CHECKS, read_files, run_terminals, write_file
from accord_check.client.probes import probed
from accord_check.client.scenario_run import Played, Profile
from accord_check.conversation import Exchange, Frame, object_of

OPTIONS: list[dict[str, Any]] = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
INVALID_PARAMS = -32602

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "default": "Ada"},
        "count": {"type": "integer", "title": "Count", "default": 3},
        "sure": {"type": "boolean", "title": "Sure", "default": True},
    },
    "required": ["name"],
}


def asks_permission(played: Played, call: str, title: str) -> Exchange:
    """Ask for a permission, about a tool call of this id."""
    played.tool(call, title=title, kind="edit", status="pending")
    about: dict[str, Any] = {"toolCall": {"toolCallId": call}}
    if played.version == 2:
        about = {"title": title, "subject": {"type": "tool_call", **about}}
    return played.call_here("session/request_permission", **about, options=OPTIONS)


async def permitted(played: Played) -> None:
    """Two permissions at once: both are answered, whatever the user chooses."""
    asked = [asks_permission(played, f"check-edit-{number}", f"Edit {number}") for number in (1, 2)]
    for number, exchange in enumerate(asked, 1):
        if await answered_by_user(played, exchange, "permission.always-offered"):
            outcome = object_of(exchange.fields.get("outcome"))
            is_yes = outcome.get("optionId") in ("yes", "always")
            played.update(
                "tool_call_update", toolCallId=f"check-edit-{number}", status="completed" if is_yes else "failed"
            )


async def answered_by_user(played: Played, exchange: Exchange, name: str) -> bool:
    """Wait for an answer that a user may have to give; returns whether it came."""
    try:
        await played.answer(exchange, played.settings.asks_within)
    except Unanswered as error:
        played.skip(name, f"{error}: the client may wait for its user")
        return False
    return True


async def questioned(played: Played) -> None:
    """A form, and a question of a mode that the client did not declare."""
    if not played.declares("elicitation"):
        for name in ("elicitation.form.validated", "elicitation.answer.action", "elicitation.undeclared-mode-code"):
            played.skip(name, "the client does not declare elicitation")
        return
    by_form = played.declares("elicitation.form") or not played.declares("elicitation.url")
    if by_form:
        form = played.call_here("elicitation/create", mode="form", message="Fill this in", requestedSchema=FORM)
        await answered_by_user(played, form, "elicitation.answer.action")
    if by_form and played.declares("elicitation.url"):
        played.skip("elicitation.undeclared-mode-code", "the client declares both modes")
        return
    undeclared: dict[str, Any] = (
        {"mode": "url", "url": "https://example.com/", "elicitationId": "check-link"}
        if by_form
        else {"mode": "form", "requestedSchema": FORM}
    )
    exchange = played.call_here("elicitation/create", message="Open this", **undeclared)
    if not await answered_by_user(played, exchange, "elicitation.undeclared-mode-code"):
        raise Over
    code = object_of(exchange.error).get("code")
    said = f"was refused with {code}" if code is not None else f"was answered with {exchange.result!r:.80}"
    wrong = None if code == INVALID_PARAMS else f"a question in the undeclared mode {undeclared['mode']!r} {said}"
    played.judged("elicitation.undeclared-mode-code", wrong, exchange.frame, exchange.answered)


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
        for name in (*READ_CHECKS, "files.write.creates", *TERMINAL_CHECKS):
            played.skip(name, reason)
        return
    outside = stage.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    await read_files(played, folder, outside)
    await write_file(played, folder)
    await run_terminals(played, folder)


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


BOTH: tuple[Profile, ...] = ("smoke", "default")


class Scenario(NamedTuple):
    """One start of the client."""

    name: str
    shows: str
    play: Callable[[Played, Stage], Awaitable[None]]
    part: Part = Part()
    profiles: tuple[Profile, ...] = ("default",)
    versions: tuple[int, ...] = (1, 2)
    ends: bool = True
    """Whether the client is expected to end by itself afterwards."""


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
_NEW: dict[str, Any] = {"_accord.check/future": {"deep": [1, {"er": None}]}, "accordCheckFuture": {}}
_FUTURE_V2: dict[str, Any] = {**EVERYTHING_V2, **_NEW, "session": {**EVERYTHING_V2["session"], **_NEW}}
_FUTURE: dict[str, Any] = {
    **EVERYTHING,
    "_accord.check/future": {"deep": [1, {"er": None}]},
    "accordCheckFuture": True,
    "sessionCapabilities": {**EVERYTHING["sessionCapabilities"], "accordCheckFuture": {}},
}

_LATER = Part(capabilities=_FUTURE, capabilities_v2=_FUTURE_V2)
_UNKNOWN_VERSION = Part(answer={"protocolVersion": 65535, "agentCapabilities": {}, "agentInfo": INFO})
_BARE = Part(capabilities={}, session={}, capabilities_v2={"session": {}}, session_v2={})


def _with_options(*options: dict[str, Any]) -> Part:
    renamed = [{"configId" if name == "id" else name: value for name, value in each.items()} for each in options]
    return Part(session={"configOptions": list(options)}, session_v2={"configOptions": renamed})


SCENARIOS = (
    Scenario("usual", "updates, questions, files, terminals, and unknown messages", usual, profiles=BOTH),
    Scenario("bare", "an agent without capabilities", bare, _BARE, BOTH),
    Scenario("version", "a version that no client speaks", version, _UNKNOWN_VERSION, BOTH),
    Scenario(
        "future",
        "capabilities that do not exist yet",
        future,
        _LATER,
    ),
    Scenario("odd option", "an option of an unknown type", odd_option, _with_options(_ODD_TYPE)),
    Scenario(
        "odd category",
        "options of unknown categories",
        odd_category,
        _with_options(*_ODD_CATEGORY),
    ),
    Scenario("late", "answers that come late", late, Part(late=True)),
    Scenario("large", "large messages, and many", large),
    Scenario("garbage", "lines that are no message", garbage),
    Scenario("cancelled", "Ctrl-C in a turn", cancelled),
    Scenario("gone", "the agent's process ends in a turn", gone, ends=False),
)
"""Every scenario, in the order in which they run."""
