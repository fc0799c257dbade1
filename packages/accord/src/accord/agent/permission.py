"""Asking the user's permission, and remembering what they always want."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal, TypeAlias, cast, get_args

import msgspec

from accord.agent.asks import Asks
from accord.arguments import shown, wrong_type
from accord.consent import Consent
from accord.errors import METHOD_NOT_FOUND, PeerError
from accord.schema import v1
from accord.schema.sendable import check_sendable

log = logging.getLogger("accord")

Offered: TypeAlias = v1.PermissionOption | v1.PermissionOptionKind
"""An answer to offer: an option, or the usual one of its kind."""

KINDS: tuple[str, ...] = get_args(v1.PermissionOptionKind)

USUAL: tuple[Offered, ...] = ("allow_once", "allow_always", "reject_once")

Remembered = Literal["session", "agent"]
"""How far an "always" reaches: the session in which it was said, or all sessions of the agent, as long as it runs."""

Subject: TypeAlias = tuple[str, str]
"""What was asked about: the kind of tool, and its title or what the author calls it."""


class Decision(Consent, msgspec.Struct, frozen=True):
    """What the user decided; it is true if the user allowed it.

    >>> async def work(turn):
    ...     if await turn.ask("Push to the server"):
    ...         await turn.say("Pushing.")
    """

    allowed: bool
    """Whether the user allowed it."""
    option: v1.PermissionOption | None = None
    """What they chose of what was offered; None if they chose nothing, or were not asked again."""
    remembered: bool = False
    """Whether they had said "always" before, and were not asked."""

    def _agreed(self) -> bool:
        return self.allowed


class PermissionMemory:
    """What the user said "always" to, by subject."""

    def __init__(self) -> None:
        self._answers: dict[Subject, bool] = {}

    def recall(self, subject: Subject) -> Decision | None:
        allowed = self._answers.get(subject)
        return None if allowed is None else Decision(allowed, remembered=True)

    def learn(self, subject: Subject, option: v1.PermissionOption) -> None:
        if option.kind in ("allow_always", "reject_always"):
            self._answers[subject] = option.kind == "allow_always"

    def forget(self) -> None:
        """Ask again about everything."""
        self._answers.clear()


def options_of(offered: Sequence[Offered]) -> list[v1.PermissionOption]:
    """These answers as options, each with an id of its own."""
    options = [_option(it) for it in offered or USUAL]
    if len({option.option_id for option in options}) < len(options):
        # tool-calls, Permission Options: "Unique identifier for this option".
        raise ValueError("the ids of a permission request's options must differ")
    return options


def _option(offered: Offered) -> v1.PermissionOption:
    """An answer to offer as an option; raises TypeError or ValueError for an invalid one."""
    if isinstance(offered, v1.PermissionOption):
        check_sendable("ask()", offered)
        return offered
    if not isinstance(cast("object", offered), str):
        raise wrong_type("ask()", "options, each a v1.PermissionOption or its kind as text", offered)
    if offered not in KINDS:
        raise ValueError(
            f"ask() takes the answers to offer, each one of {', '.join(map(repr, KINDS))} or a v1.PermissionOption, "
            f"got {shown(offered)}; the question is the title: turn.ask(title), or turn.tool(title)"
        )
    return v1.PermissionOption.of(offered)


async def decided(
    asks: Asks,
    memory: PermissionMemory,
    subject: Subject,
    request: v1.RequestPermissionRequest,
) -> Decision:
    """The user's decision: remembered, or asked for now."""
    known = memory.recall(subject)
    if known is not None:
        return known
    try:
        outcome = (await asks.request(request)).outcome
    except PeerError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        log.warning("the client cannot ask its user for permission; the request counts as refused")
        return Decision(allowed=False)
    if not isinstance(outcome, v1.SelectedPermissionOutcome):
        return Decision(allowed=False)
    option = next((it for it in request.options if it.option_id == outcome.option_id), None)
    if option is None:
        log.warning(
            "the client chose the option %r, which was not offered; the request counts as refused", outcome.option_id
        )
        return Decision(allowed=False)
    memory.learn(subject, option)
    return Decision(option.kind in ("allow_once", "allow_always"), option)
