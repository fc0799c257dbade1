"""The turns of a scenario: plain ones, one that asks for permission, one that is cancelled."""

from __future__ import annotations

from accord_check.agent.lab import Lab
from accord_check.agent.link import Link, Unanswered
from accord_check.agent.settings import NOTES


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
