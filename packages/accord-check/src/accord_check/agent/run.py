"""Runs the scenarios against an agent, and makes the report of them."""

from __future__ import annotations

import asyncio
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from accord import ConnectionClosed
from accord.transports.transport_interface import Transport
from accord_check.agent.lab import Blocked, Lab, OtherVersion
from accord_check.agent.link import Gone, Over, Unanswered
from accord_check.agent.scenarios import SCENARIOS, TERMINAL_LOGIN, Scenario
from accord_check.agent.settings import NOTES, Settings
from accord_check.checks import ACTIVE_OF_AGENT, CHECKS_OF_AGENTS, FIRST_VERSION, SECOND_VERSION
from accord_check.conversation import object_of
from accord_check.report.report import Outcome, Report, outcomes_of

Progress = Callable[[str], None]
"""Is told which scenario begins."""


async def check_agent(
    subject: str,
    dial: Callable[[], Transport],
    settings: Settings,
    *,
    only: Sequence[str] = (),
    trace: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run the scenarios of a profile against an agent; with `only`, those of these names.

    `dial` gives a transport for each start. Sessions work in a scratch folder, which is removed at the end. `trace` is
    the file for all conversations; it is written in any case.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        lab = Lab(dial, settings, _scratch(stack))
        blocked, problems = "", list[str]()
        for scenario, version in _planned(settings, only):
            if version in lab.unspoken:
                continue
            if version not in (0, lab.version):
                lab.speak(version)
            if progress is not None:
                progress(f"{scenario.shows} (version {version})" if version == 2 else scenario.shows)
            try:
                await _run(lab, scenario)
            except OtherVersion as reason:
                lab.unspoken[version] = str(reason)
            except Blocked as reason:
                blocked = blocked or str(reason)
                if not lab.peer:
                    break
            except ConnectionClosed as error:  # it did not start
                blocked = str(error)
                break
            except asyncio.CancelledError:
                raise
            except Exception as error:  # a fault of the checks is not one of the agent
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(place.filename).name}, line {place.lineno}"
                problems.append(f"in the scenario {scenario.name!r}: {type(error).__name__}: {error} ({where})")
        lab.end()
    if not lab.spoken and lab.unspoken:
        blocked = blocked or "; ".join(lab.unspoken.values())
    report = _report(subject, lab, settings)
    report.blocked, report.problems = blocked, problems
    if lab.is_spent:
        report.remarks.append(
            f"the budget of {settings.max_prompts} prompts was used up: scenarios that needed more ended early"
        )
    report.seconds = time.monotonic() - began
    if trace is not None:
        lab.recording.write(trace)
        report.trace = str(trace)
    return report


def _planned(settings: Settings, only: Sequence[str]) -> Iterator[tuple[Scenario, int]]:
    """The scenarios of a run, each with its version; 0 for one that belongs to none."""
    scenarios = (*SCENARIOS, TERMINAL_LOGIN) if settings.terminal_login else SCENARIOS
    for version in (*settings.versions, 0):
        for scenario in scenarios:
            is_chosen = settings.profile in scenario.profiles and (not only or scenario.name in only)
            if is_chosen and version in scenario.versions:
                yield scenario, version


def _scratch(stack: ExitStack) -> Path:
    """A folder for the sessions of a run, with a file that prompts may name."""
    folder = Path(
        stack.enter_context(tempfile.TemporaryDirectory(prefix="accord-check-", ignore_cleanup_errors=True))
    ).resolve()
    (folder / NOTES).write_text("first line\nsecond line\nthird line\n")
    return folder


async def _run(lab: Lab, scenario: Scenario) -> None:
    """Run one scenario. What the agent does wrong in it is a finding, and the next scenario follows."""
    try:
        await scenario.run(lab)
        lab.judge("lint.stays-alive", None)
    except Over:
        pass
    except Unanswered as error:
        if not lab.peer:
            raise Blocked(f"it does not speak the protocol: {error}") from None
        lab.judge("lint.request.answered", str(error), error.frame)
    except Gone as error:
        if not lab.peer:
            raise Blocked(f"it ended before it had answered initialize: {error}") from None
        lab.judge("lint.stays-alive", f"in the scenario {scenario.name!r}: {error}")


def _report(subject: str, lab: Lab, settings: Settings) -> Report:
    found = [finding for finding in lab.findings if finding.side == "agent"]
    reasons = dict(lab.reasons)
    if not settings.prompting:
        for check in CHECKS_OF_AGENTS:
            reasons.setdefault(check.id, f"no {check.seen} to judge: the profile smoke sends no prompts")
    info = object_of(lab.peer.get("agentInfo")) or object_of(lab.peer.get("info"))
    outcomes = outcomes_of(CHECKS_OF_AGENTS, ("agent",), lab.seen, found, reasons)
    return Report(
        subject,
        outcomes,
        demanded=_demanded(outcomes, lab) if settings.profile == "fixture" and lab.spoken else [],
        peer=" ".join(str(part) for part in (info.get("title") or info.get("name"), info.get("version")) if part),
        version=lab.spoken[0] if lab.spoken else None,
        versions=tuple(sorted(lab.spoken)),
        profile=settings.profile,
    )


def _demanded(outcomes: list[Outcome], lab: Lab) -> list[str]:
    """The active checks of a fixture that were not exercised: all but those of another version, and of HTTP."""
    over_http = {name for name in ACTIVE_OF_AGENT if name.startswith(("http.", "lint.http."))}
    left_out = set[str]() if lab.settings.url else over_http
    left_out |= FIRST_VERSION if 1 not in lab.spoken else set()
    left_out |= SECOND_VERSION if 2 not in lab.spoken else set()
    left_out |= set() if lab.settings.allow_delete else {"session.delete.idempotent"}
    idle = [outcome.check for outcome in outcomes if outcome.status == "not exercised" and outcome.check.active]
    return [check.id for check in idle if check.id not in left_out]
