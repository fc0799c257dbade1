"""`Check`: one thing that is judged, with its clause, its severity, and how to mend what it finds.

A check has the id of the requirement that it shows. What no requirement names has an id that begins with `lint.`.
The severity follows the keyword: MUST fails, SHOULD warns, MAY is noted. Where a check is lowered, `because` says why.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord_check.finding import Severity
from accord_check.requirements import Requirement, requirement

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
    active: bool = False
    """Whether it takes a scenario; the others judge any trace."""


def on(
    name: str,
    seen: str,
    *,
    fix: str = "",
    expected: str = "",
    severity: Severity | None = None,
    because: str = "",
    tck: str = "",
    active: bool = False,
) -> Check:
    """The check of the requirement with this id."""
    demand: Requirement = requirement(name)
    return Check(
        id=name,
        of=demand.of,
        level=demand.level,
        severity=severity or _SEVERITIES[demand.level],
        page=demand.page,
        clause=demand.clause,
        seen=seen,
        expected=expected or f"the {_subject(demand.of)} {demand.clause}",
        fix=fix,
        because=because,
        tck=tuple(tck.split()),
        stable=demand.stable,
        active=active,
    )


def lint(
    name: str,
    clause: str,
    seen: str,
    *,
    page: str,
    of: str = "both",
    level: str = "MUST",
    severity: Severity | None = None,
    fix: str = "",
    because: str = "",
    tck: str = "",
    active: bool = False,
) -> Check:
    """A check that no requirement names."""
    return Check(
        id=f"lint.{name}",
        of=of,
        level=level,
        severity=severity or _SEVERITIES[level],
        page=page,
        clause=clause,
        seen=seen,
        expected=f"the {_subject(of)} {clause}",
        fix=fix,
        because=because,
        tck=tuple(tck.split()),
        active=active,
    )


def active_checks(file: Path) -> dict[str, Check]:
    """The checks of a file that take a scenario, by id: those of requirements, and those with a clause of their own."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    return {
        name: lint(name.removeprefix("lint."), active=True, **words)
        if "clause" in words
        else on(name, active=True, **words)
        for name, words in tables.items()
    }


def _subject(of: str) -> str:
    return {"both": "side that sends it", "transport": "side that sends it"}.get(of, of)
