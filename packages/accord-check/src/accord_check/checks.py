"""Every check: one thing that is judged, with its clause, its severity, and how to mend what it finds.

A check has the id of the requirement that it shows. What no requirement names has an id that begins with `lint.`.
The severity follows the keyword: MUST fails, SHOULD warns, MAY is noted. Where a check is lowered, `because` says why.
The checks stand in `checks.toml`: those of `passive` judge any conversation, those of `agent` and `client` take a
scenario.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from accord import ConfigurationError
from accord_check.finding import Severity
from accord_check.requirements import requirement

_SEVERITIES: dict[str, Severity] = {"MUST": "fail", "SHOULD": "warn", "MAY": "note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is judged."""

    id: str
    of: str
    """The side that owes it: `agent`, `client`, `both` or `transport`."""
    level: str
    """MUST, SHOULD or MAY."""
    severity: Severity
    page: str
    """The page of the protocol and its heading."""
    clause: str
    """What the side owes; reads on from its name."""
    seen: str
    """What a pass is counted in: `answers`, `tool calls`."""
    expected: str
    fix: str = ""
    because: str = ""
    """Why the severity is lower than the keyword says; empty if it is not."""
    tck: tuple[str, ...] = ()
    """The ids of the official test kit that judge the same."""
    stable: bool = True
    since: str = ""
    """The schema version that it came with; empty for what older ones have as well."""
    active: bool = False
    """Whether it takes a scenario; the others judge any trace."""


def _check(name: str, words: dict[str, Any], *, active: bool) -> Check:
    """The check of a table of the file: its own words, and those of its requirement."""
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
"""The checks that judge any conversation, and those that take a scenario for agents or for clients; by their ids."""

CHECKS = {**PASSIVE, **ACTIVE_OF_AGENT, **ACTIVE_OF_CLIENT}
"""Every check by its id, in reading order."""

CHECKS_OF_AGENTS = [check for check in CHECKS.values() if check.of != "client" and check.id not in ACTIVE_OF_CLIENT]
"""The checks that a run against an agent can exercise."""

CHECKS_OF_CLIENTS = [check for check in CHECKS.values() if check.of != "agent"]
"""The checks that a run against a client can exercise."""

FIRST_VERSION = {"mode.set.any-time"}
"""The active checks of an agent that only version 1 can show."""

SECOND_VERSION = {
    "lint.prompt.empty-refused",
    "lint.resume.unknown-cursor",
    "lint.resume.work-goes-on",
    "lint.prompt.key-retried",
    "lint.prompt.key-at-once",
    "lint.prompt.key-malformed",
    "lint.fork.unknown-cursor",
    "lint.tool.cancel-unknown",
    "lint.close.unknown-succeeds",
}
"""The active checks of an agent that only version 2 can show."""


SCHEMAS = ("1.15", "1.20")
"""The versions of the protocol's schema that a program can be judged by, the oldest first."""


def newer_than(schema: str) -> frozenset[str]:
    """The ids of the checks that came with a later schema than this one of `SCHEMAS`."""
    later = SCHEMAS[SCHEMAS.index(schema) + 1 :]
    return frozenset(check.id for check in CHECKS.values() if check.since in later)


def revisions() -> list[str]:
    """The names of the frozen sets of checks, the oldest first.

    A set says what counts against a program that was made for an earlier revision of the protocol: a check that is
    added later is run and shown, and counts only for those who ask for the set that has it. A set is a file of ids, a
    line each; a file that is released never changes.
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
