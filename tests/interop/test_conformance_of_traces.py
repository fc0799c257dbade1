"""Recordings of other SDKs' clients and agents, judged as traces: every finding is true, by the clause beside it.

Each conversation is recorded between the two, by a program that passes it on. So a frame of either side may cross one
of the other on its way, as in any recording that the client did not make. A change here is a review: look at the
frames, and at the page, before the table is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.pairs import PAIRS, Pair
from interop.peers import command
from interop.script import Behaviour, run_behaviour
from interop.tap import tapped

from accord_check.trace_judge import report_on_trace

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

Finding = tuple[str, str, str, str]
"""The severity, the side, the check, and the clause or the reason."""

ASKED: dict[str, list[Finding]] = {
    "authenticate": [("fail", "client", "auth.authenticate.offered-method", "a login by an unknown method is refused")],
    "config": [("fail", "client", "config.set.offered-only", "an unknown value is refused")],
    "modes": [("fail", "client", "mode.set.offered-only", "an unknown mode is refused")],
    "errors": [("fail", "client", "prompt.session-first", "an unknown session is refused")],
    "new": [
        ("fail", "client", "mcp.http-only-when-advertised", "every kind of server, whatever the agent declares"),
        ("fail", "client", "mcp.sse-only-when-advertised", "every kind of server, whatever the agent declares"),
        ("fail", "client", "session.roots.only-when-advertised", "roots, whatever the agent declares"),
        ("warn", "client", "session.roots.no-duplicates", "the session's folder is a root as well"),
    ],
    "terminal-limits": [("warn", "agent", "lint.terminal.used-after-release", "the id of a released terminal")],
    "tool-calls": [("warn", "agent", "tool.terminal.embedded-before-release", "a terminal that does not exist")],
    "unknown-update": [],
    "elicitation": [],
    "permission": [],
    "cancel": [],
    "load": [],
}
"""By behaviour: what its script does on purpose, to see the other side refuse or ignore it."""

OF_AGENTS: dict[tuple[str, str], Finding] = {
    ("go", "elicitation"): ("fail", "agent", "elicitation.scope", "rfd-elicitation: the SDK has no sessionId for it"),
    ("rust", "unknown-update"): (
        "warn",
        "agent",
        "jsonrpc.error.message-brief",
        "json-rpc: the message lists every update that the SDK knows",
    ),
}
"""By SDK and behaviour: what the agents of other SDKs do besides."""

JUDGED = [pair for pair in PAIRS if pair.file == "protocol" and pair.client.name != pair.agent.name]


def expected(pair: Pair, behaviour: str) -> list[tuple[str, str, str]]:
    own = OF_AGENTS.get((pair.agent.name, behaviour))
    return sorted(finding[:3] for finding in [*ASKED[behaviour], *([own] if own else [])])


def traces(pair: Pair, behaviour: Behaviour, folder: Path) -> Iterator[Path]:
    """Let the two do it, and return a recording for each start of the agent."""
    client, agent = command(pair.client, "client"), command(pair.agent, "agent")
    variables = {**pair.client.environment, **pair.agent.environment}
    run_behaviour(behaviour, client, tapped(folder / "runs", agent), folder, variables)
    yield from sorted((folder / "runs").glob("*.jsonl"))


@pytest.mark.parametrize("pair", JUDGED, ids=lambda pair: f"{pair.client.name}-with-{pair.agent.name}")
def test_every_finding_in_a_recording_of_another_sdk_is_reviewed(pair: Pair, tmp_path: Path):
    behaviours = {behaviour.name: behaviour for behaviour in pair.behaviours()}
    found: dict[str, list[tuple[str, str, str]]] = {}
    for name in ASKED:
        (folder := tmp_path / name).mkdir()
        try:
            reports = [report_on_trace(trace) for trace in traces(pair, behaviours[name], folder)]
        except Unavailable as missing:
            pytest.skip(str(missing))
        assert reports
        assert [report.blocked for report in reports] == [""] * len(reports)
        found[name] = sorted({(one.severity, one.side, one.id) for report in reports for one in report.findings})
    assert found == {name: expected(pair, name) for name in ASKED}
