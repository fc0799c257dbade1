"""The protocol's requirements as data; checks and tests refer to them by id.

    >>> from accord_check.requirements import requirement
    >>> cancelled = requirement("prompt.cancel.answers-cancelled")
    >>> print(cancelled.of, cancelled.level, cancelled.clause)
    agent MUST answers a cancelled prompt with stop reason cancelled

They are in `requirements.toml`, by page. The scheme:

- `id`: dotted and lower-case, from the wide to the narrow. It is a name for good: tests, reports and other programs
  refer to it, so a demand may be reworded or retired, but its id is never renamed and never given to another.
- `of`: the side that must meet it (`agent`, `client`, `both`, `transport`); the clause continues from there.
- `level`: MUST, SHOULD or MAY. "Must not" is a MUST whose clause says never, nothing or only. A demand that a page
  makes without any of these words, in plain statements, is a MUST.
- `page`: the page and its heading (`prompt-turn, Cancellation`), as clauses are cited in comments; what stands above
  the first heading is cited under the page's title. Pages called `rfd-...` are proposals; `json-rpc` is the JSON-RPC
  2.0 specification, to which the protocol's overview binds both sides.
- `layer`: the part of a program that keeps it. Those of the `engine` are kept once, for every agent and client.
- `stable`: False for what only a proposal has. A proposal whose feature is in the stable schema is stable.

A demand that cannot be observed from outside or in a test (be careful, document it, be consistent) has no entry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, cast

Side = Literal["agent", "client", "both", "transport"]
"""The side that must comply. A requirement of one end of a transport is that end's: a server's is the agent's."""

Level = Literal["MUST", "SHOULD", "MAY"]

Layer = Literal["engine", "agent", "client", "host", "http"]
"""The part of a program that implements it: the JSON-RPC engine below every agent and client (messages, framing, order,
cancellation, the time before `initialize`), an agent, a client, the services of a client, or the HTTP transport.
"""


class Requirement(NamedTuple):
    """A demand of the protocol, under an id that never changes. Its clause reads on from the side that must meet it."""

    id: str
    of: Side
    level: Level
    page: str
    clause: str
    layer: Layer
    stable: bool = True


_SIDES: dict[str, tuple[Side, Layer]] = {
    "agent": ("agent", "agent"),
    "client": ("client", "client"),
    "host": ("client", "host"),
    "tool-bridge": ("both", "host"),
    "engine": ("both", "engine"),
    "agent-engine": ("agent", "engine"),
    "client-engine": ("client", "engine"),
    "framing": ("transport", "engine"),
    "http-link": ("transport", "http"),
    "http-server": ("agent", "http"),
    "http-client": ("client", "http"),
}
"""The sides as the file names them: the side that must comply, and the layer that implements it."""


def _read(text: str) -> Iterator[Requirement]:
    for table in tomllib.loads(text)["pages"]:
        page, stable = table.pop("page"), table.pop("stable", True)
        for name, sides in table.items():
            [(side, levels)] = sides.items()
            [(level, clause)] = levels.items()
            of, layer = _SIDES[side]
            yield Requirement(name, of, cast("Level", level.upper()), page, clause, layer, stable)


ALL = tuple(_read(Path(__file__).with_suffix(".toml").read_text("utf-8")))
"""Every requirement, in reading order."""

REQUIREMENTS: dict[str, Requirement] = {it.id: it for it in ALL}
"""Every requirement by its id."""


def requirement(name: str) -> Requirement:
    """The requirement with this id."""
    try:
        return REQUIREMENTS[name]
    except KeyError:
        raise KeyError(f"no requirement has the id {name!r}") from None
