"""`accord replay`: plays the agent or the client of a trace."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from accord import StdioTransport
from accord.program import run_until_the_end
from accord.testing import RecordedAgent, RecordedClient
from accord_tools.cli.agent_options import agent_arguments, chosen_agent
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error, print_line
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, TIMED_OUT, WrongUsage
from accord_tools.cli.trace_options import TRACE_HELP, find_trace, readable_trace

EPILOG = """\
As the agent, it answers a client on standard input and output as the recorded agent did, without a model:
  accord replay wire.jsonl --as agent
  accord run "Fix it" -- accord replay wire.jsonl --as agent

As the client, it drives an agent as the recorded client did, and says where outcomes differ (exit status 1):
  accord replay wire.jsonl --as client -- gemini --acp
  accord replay wire.jsonl --as client --cwd . -a gemini

Messages are matched by method, session and content, not by their order, and ids are renamed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "accord replay [FILE] --as agent|client [options] [-- COMMAND...]"
    parser.add_argument("file", nargs="?", metavar="FILE", help=TRACE_HELP)
    option(parser, "--as", "the side to play", dest="side", choices=("agent", "client"), required=True)
    option(parser, "--speed X", "as agent: play the recorded pauses X times as fast (default: none)", type=float)
    option(parser, "--cwd DIR", "as client: the folder of the sessions (default: as recorded)")
    option(parser, "--timeout S", "as client: end after this many seconds", type=float)
    agent_arguments(parser)


def run(options: argparse.Namespace) -> int | None:
    path = find_trace(options.file)
    with readable_trace(path):
        if options.side == "client":
            return _as_client(path, options)
        _as_agent(path, options)
    return None


def _as_agent(path: str, options: argparse.Namespace) -> None:
    if options.agent or options.named:
        raise WrongUsage("--as agent plays the agent itself; leave the agent out, or use --as client")
    try:
        agent = RecordedAgent(path, speed=options.speed)
    except ValueError as error:
        raise WrongUsage(f"--{error}") from error

    async def serve() -> None:
        await agent.serve(StdioTransport.standard())

    run_until_the_end(serve(), "accord replay", uvloop=None)


def _as_client(path: str, options: argparse.Namespace) -> int:
    if not options.agent and options.named is None:
        raise WrongUsage("name the agent to drive: accord replay FILE --as client -- COMMAND..., or -a AGENT")
    agent = chosen_agent(options)
    cwd = None if options.cwd is None else str(Path(options.cwd).absolute())
    client = RecordedClient(path, cwd=cwd)

    async def play() -> list[str]:
        async with asyncio.timeout(options.timeout):
            return await client.play(agent.target(on_stderr=print_error).dial())

    try:
        differences = asyncio.run(play())
    except TimeoutError:
        print_error(f"accord replay: not done within --timeout {options.timeout:g}")
        return TIMED_OUT
    for difference in differences:
        print_line(difference)
    turns = sum(it.method == "session/prompt" and it.kind == "request" for it in client.said)
    print_line(f"{turns} turns played, {len(differences)} differences")
    return FAILED if differences else ENDED_WELL
