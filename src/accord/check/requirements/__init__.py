"""The protocol's requirements as data; checks and tests refer to them by id.

    >>> from accord.check.requirements import requirement
    >>> cancelled = requirement("prompt.cancel.answers-cancelled")
    >>> print(cancelled.of, cancelled.level, cancelled.clause)
    agent MUST answers a cancelled prompt with stop reason cancelled

The scheme:

- `id`: dotted and lower-case, from the wide to the narrow. It is a name for good: tests, reports and other programs
  refer to it, so a demand may be reworded or retired, but its id is never renamed and never given to another.
- `of`: the side that must meet it (`agent`, `client`, `both`, `transport`); the clause continues from there.
- `level`: MUST, SHOULD or MAY. "Must not" is a MUST whose clause says never, nothing or only.
- `page`: the page and its heading (`prompt-turn, Cancellation`), as clauses are cited in comments; what stands above
  the first heading is cited under the page's title. Pages called `rfd-...` are proposals; `json-rpc` is the JSON-RPC
  2.0 specification, to which the protocol's overview binds both sides.
- `layer`: the part of a program that keeps it. Those of the `engine` are kept once, for every agent and client.
- `stable`: False for what only a proposal has. A proposal whose feature is in the stable schema is stable.

A demand that cannot be observed from outside or in a test (be careful, document it, be consistent) has no entry.
"""

from __future__ import annotations

from accord.check.requirements.elicitation import ELICITATION
from accord.check.requirements.entry import Layer, Level, Requirement, Side
from accord.check.requirements.http import HTTP
from accord.check.requirements.lent import LENT
from accord.check.requirements.opening import OPENING
from accord.check.requirements.sessions import SESSIONS
from accord.check.requirements.settings import SETTINGS
from accord.check.requirements.suggestions import SUGGESTIONS
from accord.check.requirements.turns import TURNS
from accord.check.requirements.wire import WIRE

__all__ = ["ALL", "REQUIREMENTS", "Layer", "Level", "Requirement", "Side", "requirement"]

ALL: tuple[Requirement, ...] = (
    *WIRE,
    *OPENING,
    *SESSIONS,
    *SETTINGS,
    *TURNS,
    *LENT,
    *ELICITATION,
    *SUGGESTIONS,
    *HTTP,
)
"""Every requirement, in reading order."""

REQUIREMENTS: dict[str, Requirement] = {it.id: it for it in ALL}
"""Every requirement by its id."""


def requirement(name: str) -> Requirement:
    """The requirement with this id."""
    try:
        return REQUIREMENTS[name]
    except KeyError:
        raise KeyError(f"no requirement has the id {name!r}") from None
