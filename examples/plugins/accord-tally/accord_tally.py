"""`accord tally`: sends a prompt to an agent, and counts the tools that it uses."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import accord
from accord_tools.cli.command import (
    ENDED_WELL,
    FAILED,
    ChosenAgent,
    Command,
    WrongUsage,
    agent_arguments,
    chosen_agent,
    print_error,
    print_json,
    print_progress,
    print_table,
    protocol_versions,
    run_async,
)

EXAMPLES = """\
examples:
  accord tally "What does this project do?"
  accord tally "Fix the test" --folder ~/project -a gemini
  accord tally "Fix the test" --json -- my-agent --acp

What the agent asks permission for is refused, so a tally counts what it tries. Without any tool the exit code is 1."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("prompt", metavar="TEXT", help="what the agent is asked")
    parser.add_argument("--folder", metavar="DIR", default=".", help="the folder that it works in (default: this one)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    agent_arguments(parser)


def run(options: argparse.Namespace) -> int:
    folder = Path(options.folder).absolute()
    if not folder.is_dir():
        raise WrongUsage(f"--folder must be a folder, got {options.folder!r}")
    tally = run_async(count_tools(chosen_agent(options), protocol_versions(options), folder, options.prompt))
    rows = [(kind, status, count) for (kind, status), count in tally.most_common()]
    if options.json:
        print_json([{"kind": kind, "status": status, "count": count} for kind, status, count in rows])
    elif rows:
        print_table(("TOOL", "STATUS", "COUNT"), [(kind, status, str(count)) for kind, status, count in rows])
    else:
        print_error("the agent used no tool")
    return ENDED_WELL if rows else FAILED


async def count_tools(
    agent: ChosenAgent, versions: Sequence[int], folder: Path, prompt: str
) -> Counter[tuple[str, str]]:
    """How often the agent used a tool of each kind, and how that ended."""
    async with accord.connect(agent.target(), versions=versions) as remote:
        session = await remote.new_session(folder)
        print_progress(f"asking {session.agent}")
        await session.prompt(prompt)
        return Counter((call.kind or "other", call.status or "unknown") for call in session.state.tool_calls.values())


COMMAND = Command("Count the tools that an agent uses for a prompt.", arguments, run)
