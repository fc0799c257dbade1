"""The scenarios: each is one start of the client, with a script of our agent, and the events of its first turn.

A client that sends a prompt and ends suffices for all of them. Features that it does not use are not exercised. A
client without a user answers questions (permissions, forms), too, or reports that it cannot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from accord.errors import INVALID_PARAMS
from accord_check.agent.raw_connection import Gone, Over, Unanswered
from accord_check.client.probes import READ_CHECKS, TERMINAL_CHECKS, probed, read_files, run_terminals, write_file
from accord_check.client.scenario_run import (
    CAPABILITIES,
    INFO,
    OPTION,
    SAMPLES,
    AgentScript,
    Profile,
    ScenarioRun,
    settings_of,
)
from accord_check.conversation import Exchange, Frame, object_of


def asks_permission(run: ScenarioRun, call: str, title: str) -> Exchange:
    """Ask for a permission, about a tool call of this id."""
    run.tool(call, title=title, kind="edit", status="pending")
    about: dict[str, Any] = {"toolCall": {"toolCallId": call}}
    if run.version == 2:
        about = {"title": title, "subject": {"type": "tool_call", **about}}
    return run.call_here("session/request_permission", **about, options=SAMPLES["permission options"])


async def permitted(run: ScenarioRun) -> None:
    """Two permissions at once: both are answered, whatever the user chooses."""
    asked = [asks_permission(run, f"check-edit-{number}", f"Edit {number}") for number in (1, 2)]
    for number, exchange in enumerate(asked, 1):
        if await answered_by_user(run, exchange, "permission.always-offered"):
            outcome = object_of(exchange.fields.get("outcome"))
            is_yes = outcome.get("optionId") in ("yes", "always")
            run.update(
                "tool_call_update", toolCallId=f"check-edit-{number}", status="completed" if is_yes else "failed"
            )


async def answered_by_user(run: ScenarioRun, exchange: Exchange, name: str) -> bool:
    """Wait for an answer that a user may have to give; returns whether it came."""
    try:
        await run.answer(exchange, run.settings.asks_within)
    except Unanswered as error:
        run.skip(name, f"{error}: the client may wait for its user")
        return False
    return True


async def questioned(run: ScenarioRun) -> None:
    """A form, and a question of a mode that the client did not declare."""
    if not run.declares("elicitation"):
        run.skip(
            ("elicitation.form.validated", "elicitation.answer.action", "elicitation.undeclared-mode-code"),
            "the client does not declare elicitation",
        )
        return
    by_form = run.declares("elicitation.form") or not run.declares("elicitation.url")
    if by_form:
        form = run.call_here("elicitation/create", mode="form", message="Fill this in", requestedSchema=SAMPLES["form"])
        await answered_by_user(run, form, "elicitation.answer.action")
    if by_form and run.declares("elicitation.url"):
        run.skip("elicitation.undeclared-mode-code", "the client declares both modes")
        return
    undeclared: dict[str, Any] = (
        {"mode": "url", "url": "https://example.com/", "elicitationId": "check-link"}
        if by_form
        else {"mode": "form", "requestedSchema": SAMPLES["form"]}
    )
    exchange = run.call_here("elicitation/create", message="Open this", **undeclared)
    if not await answered_by_user(run, exchange, "elicitation.undeclared-mode-code"):
        raise Over
    code = object_of(exchange.error).get("code")
    said = f"was refused with {code}" if code is not None else f"was answered with {exchange.result!r:.80}"
    verdict = code == INVALID_PARAMS or f"a question in the undeclared mode {undeclared['mode']!r} {said}"
    run.judged("elicitation.undeclared-mode-code", verdict, exchange)


BAD_ID = 4_999
"""The id of a message that is malformed."""


class Stage(NamedTuple):
    """The surroundings of one scenario."""

    folder: Path
    """The scratch folder. Files are only made in it."""
    interrupt: Callable[[], None] | None
    """Sends Ctrl-C to the client; None for a client that was started by hand."""


async def usual(run: ScenarioRun, stage: Stage) -> None:
    """Send every update, messages that no client knows, questions, files and terminals, in one turn."""
    await run.prompted()
    await run.answers_custom()
    await run.must_answer(run.call("accord_check_nothing", {}), "lint.client.answers")
    await probed(run)
    await permitted(run)
    await questioned(run)
    if run.version == 1:  # version 2 lends neither files nor terminals
        await _lent(run, stage)
    sent = run.say("The checks are done.")
    await run.alive("lint.client.stays-in-turn", "the last message of the turn", sent)
    await _finished(run)


async def _lent(run: ScenarioRun, stage: Stage) -> None:
    folder = run.folder
    if not folder.is_relative_to(stage.folder):
        reason = "the client's session works outside of the scratch folder, where the checks make no files"
        run.skip((*READ_CHECKS, "files.write.creates", *TERMINAL_CHECKS), reason)
        return
    outside = stage.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    await read_files(run, folder, outside)
    await write_file(run, folder)
    await run_terminals(run, folder)


Play = Callable[[ScenarioRun, Stage], Awaitable[None]]


def _reaching(name: str, what: str, said: str = "") -> Play:
    """Play a scenario that is odd only in its answers: the client sends a prompt after them, as the check `name`."""

    async def play(run: ScenarioRun, _: Stage) -> None:
        await _reaches_prompt(run, name, what)
        if said:
            run.say(said)
        await _finished(run)

    return play


bare = _reaching("capabilities.client-any-combination", "an agent without capabilities", "I can do nothing else.")
future = _reaching("capabilities.unknown-harmless", "unknown capabilities")
odd_option = _reaching("config.unknown-type-ignored", "an option of an unknown type")
odd_category = _reaching("config.category.unknown-accepted", "options of an unknown and of no category")


async def late(run: ScenarioRun, _: Stage) -> None:
    """Give late answers, in a slow turn."""
    name = "lint.client.waits"
    await _reaches_prompt(run, name, f"answers that came after {run.settings.late:g} s")
    await run.quiet(run.settings.late, run.settings.late)
    if run.end is not None:
        run.judged(name, f"{run.end.detail} before the prompt was answered", run.last)
        raise Over
    await _finished(run)


async def version(run: ScenarioRun, _: Stage) -> None:
    """Answer with a version that the client cannot speak; the client must disconnect."""
    name = "initialize.version.client-leaves"
    with suppress(TimeoutError, Gone):
        await run.until(lambda: bool(run.asked), run.settings.start_within)
    if not run.asked:
        return
    wrong = None
    try:
        await run.until(lambda: len(run.asked) > 1, run.settings.end_within)
        wrong = "the client went on after the answer named version 65535"
    except TimeoutError:
        wrong = "the client left the connection open, after the answer named version 65535"
    except Gone:
        pass
    run.judged(name, wrong, run.asked[-1])


async def large(run: ScenarioRun, _: Stage) -> None:
    """Send messages of 200 kB and of 5 MB, and thousands of small ones."""
    await run.prompted()
    await run.answers_custom()
    for size in (200_000, 5_000_000):
        sent = run.say("much of this text is the same. " * (size // 31))
        await run.alive("lint.client.takes-large-messages", f"a message of {size:,} bytes", sent)
    for _number in range(2_000):
        run.say(".")
    await run.alive("lint.client.takes-many-updates", "2,000 updates at once")
    await _finished(run)


async def garbage(run: ScenarioRun, _: Stage) -> None:
    """Send lines that are no message, and a message that is malformed."""
    await run.prompted()
    await run.answers_custom()
    what = "a request whose method is 7"
    sent = run.send({"id": BAD_ID, "method": 7})
    await run.alive("lint.client.survives-noise", what, sent)

    def answers() -> list[Frame]:
        return [frame for frame in run.replies if frame.members.get("id") in (BAD_ID, None)]

    with suppress(TimeoutError, Gone):
        await run.until(lambda: bool(answers()), run.settings.quiet)
    answered = next(iter(answers()), None)
    code = object_of(answered.members.get("error")).get("code") if answered is not None else None
    verdict = code == -32600 or f"{what} " + ("had no answer" if code is None else f"was refused with {code}")
    run.judged("jsonrpc.error.invalid-request", verdict, sent, answered)
    if run.client.starts_process:
        sent = run.send_raw(b"Loading the model...")
        await run.alive("lint.client.survives-noise", "a line of text on standard output", sent)
    await _finished(run)


async def cancelled(run: ScenarioRun, stage: Stage) -> None:
    """Get Ctrl-C in a turn with an open question. Updates still come, and the turn ends as cancelled."""
    name = "prompt.cancel.late-updates-taken"
    await run.prompted()
    await run.answers_custom()
    run.say("Press Ctrl-C, or cancel this turn in another way. ")
    await run.alive("lint.client.takes-updates", "a message")
    question = asks_permission(run, "check-cancelled", "Something to cancel")
    # A question that crosses the cancel on its way is not open when the client cancels.
    await run.alive("lint.client.takes-updates", "a question")
    with suppress(Unanswered):  # a client that answers without its user does so now
        await run.answer(question, run.settings.quiet)
    if stage.interrupt is not None:
        stage.interrupt()
    try:
        asked = run.asked
        await run.until(
            lambda: any(it.members.get("method") == "session/cancel" for it in asked), run.settings.asks_within
        )
    except (TimeoutError, Gone) as error:
        why = "ended without" if isinstance(error, Gone) else "sent no"
        run.skip(name, f"the client {why} session/cancel after Ctrl-C")
        run.finish()
        raise Over from None
    await run.quiet(3 * run.settings.quiet, 3.0)
    if run.end is not None:
        run.skip(name, "the client ended the connection with session/cancel")
        raise Over
    sent = run.update("tool_call_update", toolCallId="check-cancelled", status="failed")
    await run.alive(name, "an update that followed session/cancel", sent)
    with suppress(Unanswered):
        await run.answer(question, run.settings.asks_within)
    await _finished(run, "cancelled")


async def gone(run: ScenarioRun, _: Stage) -> None:
    """The agent's process ends in the middle of a turn."""
    await run.prompted()
    run.say("I am about to fail. ")
    run.client.complain(b"fatal: the model is gone\n")
    run.client.exit(3)
    with suppress(TimeoutError, Gone):
        await run.until(lambda: False, run.settings.end_within)


async def _reaches_prompt(run: ScenarioRun, name: str, what: str) -> None:
    """Wait for a prompt, and judge by this check that there is one after the answers of this scenario."""
    try:
        await run.prompted()
    except Over:
        if run.judge.conversation.is_initialized:  # it got as far as what is odd here
            ended = run.end.detail if run.end is not None else "the client sent no prompt"
            run.judged(name, f"{ended} after {what}", run.last)
        raise
    is_ours = run.session in run.agent.sessions
    run.judged(name, is_ours or f"after {what} the client prompts in {run.session!r}, which it was not given", run.last)


async def _finished(run: ScenarioRun, reason: str = "end_turn") -> None:
    """End the turn; judge that the client was still connected."""
    name = "lint.client.stays-in-turn"
    if run.end is not None:
        run.judged(name, f"{run.end.detail} before its prompt was answered", run.last)
        raise Over
    run.judged(name, None)
    run.finish(reason)


BOTH: tuple[Profile, ...] = ("smoke", "default")


class ClientScenario(NamedTuple):
    """One start of the client."""

    name: str
    shows: str
    play: Play
    script: AgentScript = AgentScript()
    profiles: tuple[Profile, ...] = ("default",)
    versions: tuple[int, ...] = (1, 2)
    ends: bool = True
    """Whether the client is expected to end on its own afterwards."""


_NEW: dict[str, Any] = {"_accord.check/future": {"deep": [1, {"er": None}]}, "accordCheckFuture": {}}


def _later(version: int, nested: str) -> dict[str, Any]:
    """Return all capabilities of this version, and unknown ones beside them and inside one of them."""
    known = CAPABILITIES[str(version)]
    return {**known, **_NEW, nested: {**known[nested], **_NEW}}


def _with_options(*options: dict[str, Any]) -> AgentScript:
    return AgentScript(session={version: settings_of(version, *options) for version in (1, 2)})


_LATER = AgentScript({1: _later(1, "sessionCapabilities"), 2: _later(2, "session")})
_UNKNOWN_VERSION = AgentScript(answer={"protocolVersion": 65535, "agentCapabilities": {}, "agentInfo": INFO})
_BARE = AgentScript({1: {}, 2: {"session": {}}}, {1: {}, 2: {}})
_ODD_TYPE = _with_options(SAMPLES["odd option"])
_ODD_CATEGORY = _with_options(
    {**OPTION, "id": "plain", "category": None}, {**OPTION, "id": "odd", "category": "_accord.check/category"}
)

SCENARIOS = (
    ClientScenario("usual", "updates, questions, files, terminals, and unknown messages", usual, profiles=BOTH),
    ClientScenario("bare", "an agent without capabilities", bare, _BARE, BOTH),
    ClientScenario("version", "a version that no client speaks", version, _UNKNOWN_VERSION, BOTH),
    ClientScenario("future", "capabilities that do not exist yet", future, _LATER),
    ClientScenario("odd option", "an option of an unknown type", odd_option, _ODD_TYPE),
    ClientScenario("odd category", "options of unknown categories", odd_category, _ODD_CATEGORY),
    ClientScenario("late", "answers that come late", late, AgentScript(late=True)),
    ClientScenario("large", "large messages, and many", large),
    ClientScenario("garbage", "lines that are no message", garbage),
    ClientScenario("cancelled", "Ctrl-C in a turn", cancelled),
    ClientScenario("gone", "the agent's process ends in a turn", gone, ends=False),
)
"""Every scenario, in the order in which they run."""
