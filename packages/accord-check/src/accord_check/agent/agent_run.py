"""Runs the scenarios against an agent, and makes their report. Each scenario is one start of the agent."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from accord import ConnectionClosed
from accord.transports import Transport
from accord_check.agent.full_scenarios import (
    cancelled_at_once,
    cancelled_question,
    http_server,
    killed_in_a_turn,
    many_requests,
    opened_again,
    second_client,
    stdio_servers,
    two_sessions,
)
from accord_check.agent.proposed_scenarios import session_cursors, session_options
from accord_check.agent.raw_connection import Blocked, Gone, Over, Unanswered
from accord_check.agent.raw_http import raw_http
from accord_check.agent.scenario_context import OtherVersion, Progress, ScenarioContext, fault_of_checks
from accord_check.agent.settings import NOTES, Profile, Settings
from accord_check.agent.usual_scenarios import (
    bare,
    ended_in_turn,
    garbage,
    healthy,
    idempotency_keys,
    latest,
    restarted,
    resumed_at_work,
    second_version,
    terminal_login,
)
from accord_check.checks import CHECKS_OF_AGENTS
from accord_check.report import Outcome, Report

PROMPTING: tuple[Profile, ...] = ("default", "full", "fixture")
FULL: tuple[Profile, ...] = ("full", "fixture")


class AgentScenario(NamedTuple):
    """One start of the agent."""

    name: str
    shows: str
    run: Callable[[ScenarioContext], Awaitable[None]]
    profiles: tuple[Profile, ...] = ("smoke", "default", "full", "fixture")
    versions: tuple[int, ...] = (1, 2)


SCENARIOS = (
    AgentScenario("healthy", "sessions, lists, turns, cancelling, the end", healthy),
    AgentScenario("bare", "a client without capabilities", bare),
    AgentScenario("version 2", "what version 2 refuses", second_version, versions=(2,)),
    AgentScenario("idempotency keys", "prompts that are retried", idempotency_keys, PROMPTING, (2,)),
    AgentScenario("resumed at work", "a session that is resumed while it works", resumed_at_work, PROMPTING, (2,)),
    AgentScenario("session options", "options before a session, and initial ones", session_options),
    AgentScenario("session cursors", "a session that is forked between two turns", session_cursors, PROMPTING),
    AgentScenario("two sessions", "two sessions at work at once", two_sessions, FULL),
    AgentScenario("opened again", "sessions that are resumed and forked", opened_again, FULL),
    AgentScenario("MCP servers", "a session with MCP servers", stdio_servers, FULL),
    AgentScenario("remote MCP server", "a session with an MCP server over HTTP", http_server, FULL),
    AgentScenario("killed in a turn", "a session after its agent was killed", killed_in_a_turn, FULL),
    AgentScenario("open question", "a turn that is cancelled while it asks", cancelled_question, FULL),
    AgentScenario("at once", "a turn that is cancelled at once", cancelled_at_once, FULL),
    AgentScenario("second client", "two clients at once", second_client, FULL),
    AgentScenario("many requests", "a thousand requests at once", many_requests, FULL),
    AgentScenario("raw HTTP", "requests over raw HTTP", raw_http, FULL),
    AgentScenario("latest", "a version that does not exist yet", latest, versions=(0,)),
    AgentScenario("garbage", "input that is no message", garbage),
    AgentScenario("restarted", "a session after a restart", restarted, PROMPTING),
    AgentScenario("ended in a turn", "the end of the input in a turn", ended_in_turn, PROMPTING),
)
"""The scenarios, in the order in which they run."""

TERMINAL_LOGIN = AgentScenario("terminal login", "a client that can open a terminal for a login", terminal_login)
"""The scenario of `Settings.terminal_login`."""


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

    `dial` returns a transport for each start. Sessions work in a scratch folder, which is removed at the end. `trace`
    is the file for all conversations; it is written in any case.
    """
    with ExitStack() as stack:
        context = ScenarioContext(dial, settings, _scratch(stack))
        blocked = ""
        for scenario, version in _planned(settings, only):
            if version in context.unspoken:
                continue
            if version not in (0, context.version):
                context.speak(version)
            if progress is not None:
                progress(f"{scenario.shows} (version {version})" if version == 2 else scenario.shows)
            try:
                await _run(context, scenario)
            except OtherVersion as reason:
                context.unspoken[version] = str(reason)
            except Blocked as reason:
                blocked = blocked or str(reason)
                if not context.spoken:
                    break
            except ConnectionClosed as error:  # it did not start
                blocked = str(error)
                break
            except asyncio.CancelledError:
                raise
            except Exception as error:  # a fault of the checks is not one of the agent
                context.problems.append(fault_of_checks(scenario.name, error))
        context.speak(context.version)
    if not context.spoken and context.unspoken:
        blocked = blocked or "; ".join(context.unspoken.values())
    if not settings.prompting:
        for check in CHECKS_OF_AGENTS:
            context.skip(check.id, f"no {check.seen} to judge: the profile smoke sends no prompts")
    report = context.report(subject, settings.profile, blocked, trace)
    if settings.profile == "fixture" and context.spoken:
        report.demanded = _demanded(report.outcomes, context)
    if context.is_spent:
        report.remarks.append(
            f"the budget of {settings.max_prompts} prompts was used up: scenarios that needed more ended early"
        )
    return report


def _planned(settings: Settings, only: Sequence[str]) -> Iterator[tuple[AgentScenario, int]]:
    """Return the scenarios of a run, each with its version; 0 for one that belongs to none."""
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


async def _run(context: ScenarioContext, scenario: AgentScenario) -> None:
    """Run one scenario. A fault of the agent in it is a finding, and the next scenario follows."""
    try:
        await scenario.run(context)
        context.judge("lint.stays-alive", None)
    except Over:
        pass
    except Unanswered as error:
        if not context.spoken:
            raise Blocked(f"it does not speak the protocol: {error}") from None
        context.judge("lint.request.answered", str(error), error.frame)
    except Gone as error:
        if not context.spoken:
            raise Blocked(f"it ended before it had answered initialize: {error}") from None
        context.judge("lint.stays-alive", f"in the scenario {scenario.name!r}: {error}")


def _demanded(outcomes: list[Outcome], context: ScenarioContext) -> list[str]:
    """Return the active checks of a fixture that were not exercised: all but those of proposals, another version and
    HTTP.
    """
    left_out: tuple[str, ...] = () if context.settings.url else ("http.", "lint.http.")
    left_out += () if context.settings.allow_delete else ("session.delete.idempotent",)
    idle = [outcome.check for outcome in outcomes if outcome.status == "not exercised" and outcome.check.active]
    shown = [check for check in idle if check.stable and check.version in (None, *context.spoken)]
    return [check.id for check in shown if not check.id.startswith(left_out)]
