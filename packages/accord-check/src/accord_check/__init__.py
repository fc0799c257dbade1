"""Conformance checks of agents, clients and recorded traces.

    import accord_check
    from accord import trace

    for finding in accord_check.judge(trace.read("wire.jsonl")):
        print(finding.severity, finding.side, finding.id, finding.message)

`judge` needs no control over the conversation: it takes the events of a trace, or those of a live connection, and
judges both sides at once. `Judge` does the same, event by event.

`check_agent` starts an agent, and drives it through scenarios; its `Report` has the outcome of each check. `accord
check` does the same from the command line, and `accord_check.pytest_plugin` in test runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord_check.agent.agent_run import check_agent as check_agent
    from accord_check.agent.settings import Settings as Settings
    from accord_check.checks import Finding as Finding, Severity as Severity, Side as Side
    from accord_check.report import Report as Report
    from accord_check.report_formats import as_json as as_json, as_text as as_text
    from accord_check.trace_judge import Judge as Judge, judge as judge

__version__ = "0.2.0"

_HOMES = {
    "agent.agent_run": "check_agent",
    "agent.settings": "Settings",
    "checks": "Finding Severity Side",
    "report": "Report",
    "report_formats": "as_json as_text",
    "trace_judge": "Judge judge",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
