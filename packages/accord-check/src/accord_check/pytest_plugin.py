"""A plugin for pytest: tests the conformance of your own agent and of recorded conversations.

pytest loads it from the entry points of this distribution; it imports nothing of Accord, and does nothing, until one of
its fixtures or options is used. With `--acp-agent "COMMAND"`, or `acp_agent` in the configuration, each check of an
agent becomes a test; checks that were not exercised are skipped. The fixture `assert_conformant` judges a trace of your
own tests, and `acp_client` is a client of the agent, whose conversation is judged when the test is over.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from accord import TraceEvent
    from accord.sync import RemoteAgent
    from accord_check.agent.settings import Profile
    from accord_check.report import Outcome, Report

AssertConformant = Callable[..., None]


class ConformanceWarning(UserWarning):
    """A check warned: a SHOULD is broken, or a MUST that many implementations ignore."""


_REPORT = pytest.StashKey["Report"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("accord", "conformance with the Agent Client Protocol")
    group.addoption("--acp-agent", metavar="COMMAND", help="check the agent that this command or URL starts")
    group.addoption(
        "--acp-profile", choices=("smoke", "default"), default="smoke", help="the scenarios (default: smoke)"
    )
    parser.addini("acp_agent", "the command or URL of the agent to check", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "acp(id, level): a check of the Agent Client Protocol, with its id and level")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if _command(config):
        from accord_check.checks import CHECKS_OF_AGENTS

        for check in CHECKS_OF_AGENTS:
            item: CheckItem = CheckItem.from_parent(  # pyright: ignore[reportUnknownMemberType]
                session, name=f"acp::{check.id}", check=check.id
            )
            item.add_marker(pytest.mark.acp(check.id, id=check.id, level=check.level))
            items.append(item)


class CheckItem(pytest.Item):
    """One check of the agent. The agent is judged once, when the first of them runs."""

    def __init__(self, *, check: str, **arguments: Any) -> None:
        super().__init__(**arguments)  # pyright: ignore[reportUnknownMemberType]
        self._check = check

    def runtest(self) -> None:
        report = _report(self.config)
        if report.verdict in ("blocked", "error"):
            pytest.fail(f"the agent could not be judged: {report.reason}", pytrace=False)
        outcome = next(each for each in report.outcomes if each.check.id == self._check)
        if outcome.status == "not exercised":
            pytest.skip(outcome.detail)
        if outcome.status == "fail":
            pytest.fail(_said(outcome), pytrace=False)
        if outcome.status == "warn":
            warnings.warn(ConformanceWarning(_said(outcome)), stacklevel=1)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


@pytest.fixture
def acp_agent(request: pytest.FixtureRequest) -> list[str]:
    """Return the command of the agent that `--acp-agent` names, as a list of words; the test is skipped without it."""
    command = _command(request.config)
    if not command:
        pytest.skip("give --acp-agent COMMAND, or acp_agent in the configuration")
    return shlex.split(command)


@pytest.fixture
def acp_client(acp_agent: list[str], tmp_path: Path) -> Iterator[RemoteAgent]:
    """A client that is connected to the agent of `--acp-agent`; the agent's side is judged when the test is over."""
    import accord
    from accord.installation import scheme_of

    target = acp_agent[0] if scheme_of(acp_agent[0]) else acp_agent
    recorded = tmp_path / "acp-client.jsonl"
    with accord.sync.connect(target, trace=recorded) as remote:
        yield remote
    _assert_conformant(recorded, of="agent")


@pytest.fixture
def assert_conformant() -> AssertConformant:
    """Judges a trace, and fails with its faults: `assert_conformant("wire.jsonl", of="agent", strict=True)`."""
    return _assert_conformant


def _assert_conformant(
    recorded: str | Path | Iterable[TraceEvent], *, of: str = "both", strict: bool = False, ignore: Iterable[str] = ()
) -> None:
    """Fail unless a trace file, or these events, break no clause; `ignore` has the ids of checks that may fail."""
    from accord_check import judge
    from accord_check.trace_judge import BEGINS_LATE, RecordedConversation, begins_late, conversations

    given = (
        conversations(recorded) if isinstance(recorded, str | Path) else [RecordedConversation(events=list(recorded))]
    )
    whole = [one for one in given if not begins_late(one)]
    if given and not whole:
        pytest.skip(f"not judged: {BEGINS_LATE}")
    found = [finding for one in whole for finding in judge(one.events, one.client)]
    ignored = set(ignore)
    wrong = ("fail", "warn") if strict else ("fail",)
    said = [
        f"{finding.side} {finding.id}: {finding.message} ({finding.url})"
        for finding in found
        if finding.severity in wrong and of in ("both", finding.side) and finding.id not in ignored
    ]
    if said:
        pytest.fail("\n".join(said), pytrace=False)


def _command(config: pytest.Config) -> str:
    given: str = config.getoption("--acp-agent") or config.getini("acp_agent")
    return given


def _report(config: pytest.Config) -> Report:
    if _REPORT not in config.stash:
        import asyncio

        from accord.client.connect import target_of
        from accord_check.agent.agent_run import check_agent
        from accord_check.agent.settings import Settings

        command = _command(config)
        target = target_of(command)
        profile: Profile = config.getoption("--acp-profile") or "smoke"
        settings = Settings(profile=profile)
        config.stash[_REPORT] = asyncio.run(check_agent(command, target.dial, settings))
    return config.stash[_REPORT]


def _said(outcome: Outcome) -> str:
    return "\n".join(f"{finding.message}\nexpected: {finding.expected}\n{finding.url}" for finding in outcome.findings)
