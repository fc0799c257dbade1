"""A finding: what one side did, which clause it breaks, where that is seen, and what to do. PURE."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Side = Literal["agent", "client"]
"""The side that did it."""

Severity = Literal["fail", "warn", "note"]
"""`fail` breaks a MUST, `warn` breaks a SHOULD or a MUST that practice takes lightly, `note` is only said."""

SITE = "https://agentclientprotocol.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault that was observed."""

    id: str
    """The check that found it: a requirement's id, or `lint....` for what no requirement names."""
    severity: Severity
    level: str
    """The keyword of the clause: MUST, SHOULD or MAY."""
    side: Side
    """The side that is at fault."""
    message: str
    """What was seen, with values."""
    clause: str
    """What is demanded of the side: `answers every request once, whatever its handler does`."""
    expected: str
    """What should have been seen."""
    fix: str
    """What to do about it; empty if nothing more is known than what is expected."""
    page: str
    """The page of the protocol and its heading."""
    events: tuple[int, ...]
    """The events that show it, from 1; in a trace file, event N stands on line N + 1. The first few, if many do."""
    count: int = 1
    """How often the same fault was seen."""
    session: str | None = None
    """The session in which it was seen first."""
    where: str = ""
    """The conversation that shows it, if there are several; empty for the only one."""
    version: int = 1
    """The version of the protocol that was spoken."""

    @property
    def url(self) -> str:
        """The address of the clause's page in the version that was spoken, with its heading."""
        return url_of(self.page, self.version)


_ONLY_V1 = ("file-system", "session-modes", "terminals")
"""The pages that version 2 does not have."""

_RENAMED_IN_V2 = {
    "prompt-turn": "prompt-lifecycle",
    "session-setup, Loading Sessions": "session-setup, Resuming Sessions",
}
"""Pages, or pages and headings, that have another name in version 2."""


def url_of(page: str, version: int | None = 1) -> str:
    """The address of a page and heading, in this version of the protocol if it has the page.

    >>> url_of("prompt-turn, Message IDs")
    'https://agentclientprotocol.com/protocol/v1/prompt-turn#message-ids'
    >>> url_of("prompt-turn, Message IDs", 2)
    'https://agentclientprotocol.com/protocol/v2/prompt-lifecycle#message-ids'
    """
    if version == 2:
        page = _RENAMED_IN_V2.get(page, page)
    name, _, heading = page.partition(", ")
    if name == "json-rpc":
        address = "https://www.jsonrpc.org/specification"
        return f"{address}#{_slug(heading).replace('-', '_')}" if heading else address
    if version == 2 and not name.startswith(("rfd-", "v2-", *_ONLY_V1)):
        name = f"v2-{_RENAMED_IN_V2.get(name, name)}"
    starts = (("rfd-v2-", "rfds/v2"), ("rfd-", "rfds"), ("v2-", "protocol/v2"), ("", "protocol/v1"))
    for start, folder in starts:
        if name.startswith(start):
            name = f"{folder}/{name.removeprefix(start)}"
            break
    return f"{SITE}/{name}" + (f"#{_slug(heading)}" if heading else "")


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
