"""Runs the scenarios against an agent, and makes the report of them. Each scenario is one start of the agent."""

from __future__ import annotations

import asyncio
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from accord import ConnectionClosed
from accord.transports.base import Transport
from accord_check.agent.full_scenarios import (
    cancelled_at_once,
    cancelled_question,
    killed_in_a_turn,
    many_requests,
    opened_again,
    second_client,
    two_sessions,
)
from accord_check.agent.mcp_scenarios import lent_servers, remote_server
from accord_check.agent.raw_connection import Gone, Over, Unanswered
from accord_check.agent.raw_http import raw_http
from accord_check.agent.scenario_context import Blocked, Lab, OtherVersion
from accord_check.agent.settings import NOTES, Profile, Settings
from accord_check.agent.usual_scenarios import (
    bare,
    ended_in_turn,
    garbage,
    healthy,
    latest,
    restarted,
    second_version,
    terminal_login,
)
from accord_check.checks import ACTIVE_OF_AGENT, CHECKS_OF_AGENTS, FIRST_VERSION, SECOND_VERSION
from accord_check.conversation import object_of
from accord_check.report import Outcome, Report, outcomes_of

PROMPTING: tuple[Profile, ...] = ("default", "full", "fixture")
FULL: tuple[Profile, ...] = ("full", "fixture")


class Scenario(NamedTuple):
    """One start of the agent."""

    name: str
    shows: str
    run: Callable[[Lab], Awaitable[None]]
    profiles: tuple[Profile, ...] = ("smoke", "default", "full", "fixture")
    versions: tuple[int, ...] = (1, 2)


SCENARIOS = (
    Scenario("healthy", "sessions, lists, turns, cancelling, the end", healthy),
    Scenario("bare", "a client without capabilities", bare),
    Scenario("version 2", "what version 2 refuses", second_version, versions=(2,)),
    Scenario("two sessions", "two sessions at work at once", two_sessions, FULL),
    Scenario("opened again", "sessions that are resumed and forked", opened_again, FULL),
    Scenario("MCP servers", "a session with MCP servers", lent_servers, FULL),
    Scenario("remote MCP server", "a session with an MCP server over HTTP", remote_server, FULL),
    Scenario("killed in a turn", "a session after its agent was killed", killed_in_a_turn, FULL),
    Scenario("open question", "a turn that is cancelled while it asks", cancelled_question, FULL),
    Scenario("at once", "a turn that is cancelled at once", cancelled_at_once, FULL),
    Scenario("second client", "two clients at once", second_client, FULL),
    Scenario("many requests", "a thousand requests at once", many_requests, FULL),
    Scenario("raw HTTP", "requests over raw HTTP", raw_http, FULL),
    Scenario("latest", "a version that does not exist yet", latest, versions=(0,)),
    Scenario("garbage", "input that is no message", garbage),
    Scenario("restarted", "a session after a restart", restarted, PROMPTING),
    Scenario("ended in a turn", "the end of the input in a turn", ended_in_turn, PROMPTING),
)
"""The scenarios, in the order in which they run."""

TERMINAL_LOGIN = Scenario("terminal login", "a client that can open a terminal for a login", terminal_login)
"""The scenario of `Settings.terminal_login`."""


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
