"""Programs with one fault each: all of them judged, and what was found in a form for tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from accord_check.report import Report

MARKS = {"fail": "", "warn": "~", "note": "?"}
"""What stands before the id of a finding, by its severity."""


def found(report: Report) -> set[str]:
    return {f"{MARKS[finding.severity]}{finding.id}" for finding in report.findings}


def all_judged(faults: Iterable[str], judge: Callable[[str], Awaitable[Report]], at_once: int) -> dict[str, Report]:
    """The reports on all mutants. They mostly wait, so several run at a time."""

    async def judge_all() -> dict[str, Report]:
        places = asyncio.Semaphore(at_once)

        async def one(fault: str) -> tuple[str, Report]:
            async with places:
                return fault, await judge(fault)

        return dict(await asyncio.gather(*map(one, faults)))

    return asyncio.run(judge_all())
