"""Every check: its clause, its severity, and the remedy for its findings.

A check has the id of its requirement. A check without a requirement has an id that begins with `lint.`. The severity
follows the keyword: MUST fails, SHOULD warns, MAY is noted. Where a check is lowered, `because` has the reason. The
checks are in `checks.toml`: those of `passive` judge any conversation, those of `agent` and `client` need a scenario.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from accord import ConfigurationError
from accord_check.requirements import requirement

Side = Literal["agent", "client"]
"""The side that did it."""

Severity = Literal["fail", "warn", "note"]
"""`fail` breaks a MUST, `warn` a SHOULD or a MUST that many implementations ignore, `note` is only reported."""

SITE = "https://agentclientprotocol.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault that was observed."""

    id: str
    """The check that found it: a requirement's id, or `lint....` for a check without a requirement."""
    severity: Severity
    level: str
    """The keyword of the clause: MUST, SHOULD or MAY."""
    side: Side
    """The side that is at fault."""
    message: str
    """The observed behaviour, with values."""
    clause: str
    """The side's obligation: `answers every request once, whatever its handler does`."""
    expected: str
    """The expected behaviour."""
    fix: str
    """The remedy; empty if there is none beyond the expectation."""
    page: str
    """The page of the protocol and its heading."""
    events: tuple[int, ...]
    """The events that show it, from 1; in a trace file, event N is on line N + 1. Only the first few if there
    are many.
    """
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


_SEVERITIES: dict[str, Severity] = {"MUST": "fail", "SHOULD": "warn", "MAY": "note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is judged."""

    id: str
    of: str
    """The side that must comply: `agent`, `client`, `both` or `transport`."""
    level: str
    """MUST, SHOULD or MAY."""
    severity: Severity
    page: str
    """The page of the protocol and its heading."""
    clause: str
    """The side's obligation; reads on from its name."""
    seen: str
    """The unit in which a pass is counted: `answers`, `tool calls`."""
    expected: str
    fix: str = ""
    because: str = ""
    """Why the severity is lower than the keyword's; empty if it is not."""
    tck: tuple[str, ...] = ()
    """The ids of the official test kit that judge the same."""
    stable: bool = True
    since: str = ""
    """The schema version that introduced it, one of the values of `SCHEMAS`; empty if older ones have it as well."""
    version: int | None = None
    """The only version of the protocol in which a scenario can show it; None for both."""
    active: bool = False
    """Whether it takes a scenario; the others judge any trace."""

    @property
    def judged_by(self) -> str:
        """Return its subject, in words."""
        return "a scenario that asks for it" if self.active else f"all {self.seen} of a conversation"

    @property
    def found_as(self) -> str:
        """The severity of a fault, in words."""
        return {"fail": "a failure", "warn": "a warning", "note": "a note"}[self.severity]


def _check(name: str, words: dict[str, Any], *, active: bool) -> Check:
    """Return the check in a table of the file: its own words, and those of its requirement."""
    if name.startswith("lint."):
        demand: dict[str, Any] = {"id": name, "of": "both", "level": "MUST"}
    else:
        demand = requirement(name)._asdict()
        del demand["layer"]
    fields: dict[str, Any] = {**demand, **words, "tck": tuple(words.get("tck", "").split())}
    subject = "side that sends it" if fields["of"] in ("both", "transport") else fields["of"]
    fields.setdefault("severity", _SEVERITIES[fields["level"]])
    fields.setdefault("expected", f"the {subject} {fields['clause']}")
    return Check(**fields, active=active)


def _read(text: str) -> list[dict[str, Check]]:
    return [
        {name: _check(name, words, active=part != "passive") for name, words in tables.items()}
        for part, tables in tomllib.loads(text).items()
    ]


PASSIVE, ACTIVE_OF_AGENT, ACTIVE_OF_CLIENT = _read(Path(__file__).with_suffix(".toml").read_text("utf-8"))
"""The checks that judge any conversation, and those that need a scenario for agents or for clients; by their ids."""

CHECKS = {**PASSIVE, **ACTIVE_OF_AGENT, **ACTIVE_OF_CLIENT}
"""Every check by its id, in reading order."""

CHECKS_OF_AGENTS = [check for check in CHECKS.values() if check.of != "client" and check.id not in ACTIVE_OF_CLIENT]
"""The checks that a run against an agent can exercise."""

CHECKS_OF_CLIENTS = [check for check in CHECKS.values() if check.of != "agent"]
"""The checks that a run against a client can exercise."""

SCHEMAS = {
    **dict.fromkeys(("1.15", "1.16"), "1.15"),
    **dict.fromkeys(("1.17", "1.18", "1.19"), "1.17"),
    "1.20": "1.20",
    "2.4": "1.15",
}
"""The schemas by which a program can be judged, each with the one whose checks it has.

Features of 1.16 count as 1.17, and those of 1.18 and 1.19 as 1.20: none of the three was ever in the registry of
crates. 2.4 is the TypeScript SDK, whose types are those of 1.15.
"""


def read_toml(path: str | Path, wrong: type[ConfigurationError] = ConfigurationError) -> dict[str, Any]:
    """The values in a file of the user; raises `wrong` if it cannot be read."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # also if it is no TOML, or no UTF-8
        raise wrong(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def newer_than(schema: str) -> dict[str, list[str]]:
    """Return the ids of the checks that came with a later schema than this one of `SCHEMAS`, by the schema."""
    later: dict[str, list[str]] = {}
    for check in CHECKS.values():
        if check.since > SCHEMAS[schema]:
            later.setdefault(check.since, []).append(check.id)
    return dict(sorted(later.items()))


def revisions() -> list[str]:
    """Return the names of the frozen sets of checks, the oldest first.

    A set defines which checks count for a program that was made for an earlier revision of the protocol: a check that
    is added later is run and shown, and counts only for users of a set that has it. A set is a file of ids, a line
    each; a file that is released never changes.
    """
    files = resources.files("accord_check").joinpath("frozen").iterdir()
    return sorted(file.name.removesuffix(".txt") for file in files if file.name.endswith(".txt"))


def checks_of(revision: str) -> frozenset[str]:
    """The ids of the checks in a frozen set. Raises ConfigurationError for a name that no set has."""
    known = revisions()
    if revision not in known:
        raise ConfigurationError(f"no requirements are frozen as {revision!r}; there are {', '.join(known)}")
    text = resources.files("accord_check").joinpath("frozen", f"{revision}.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
