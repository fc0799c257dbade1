"""`accord bridge`: makes an agent behind a URL a local command, for editors that only start commands."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from accord.installation import scheme_of
from accord.program import on_signals
from accord_tools.cli.agent_options import remote_arguments, remote_options
from accord_tools.cli.console import output_error
from accord_tools.cli.exit_codes import FAILED, WrongUsage, one_line
from accord_tools.cli.trace_options import recorded_trace, trace_arguments

if TYPE_CHECKING:
    from accord.transports import Transport
    from accord_tools.configuration.agent_settings import AgentSettings

EPILOG = """\
Name it in an editor's settings as the agent's command:
  accord bridge https://agents.example/acp --token-file ~/.agent-token
  accord bridge ws://127.0.0.1:8000/acp

Messages are passed on unchanged. Files and terminals that the agent asks for are those of the editor's machine.
The bridge ends when the editor closes its input. When the agent's side ends first, the exit status is 1 and the reason
is on standard error."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("url", metavar="URL", help="http, https, ws or wss; or the name of an agent with a URL")
    trace_arguments(parser)
    remote_arguments(parser.add_argument_group("the agent"))


def run(options: argparse.Namespace) -> int | None:
    from accord.transports.stdio_transport import fill_closed_streams
    from accord_tools.configuration.resolve_agent import target_of

    settings = _settings(options.url)
    token, headers, tls, proxy = remote_options(options, settings)
    far = target_of(settings, token=token, headers=headers, tls=tls, proxy=proxy).dial()
    fill_closed_streams()
    with recorded_trace(options, "accord bridge", role="tap", peer=far.name) as trace:
        if trace is not None:
            from accord.transports.wrapped_transport import RecordedTransport

            far = RecordedTransport(far, trace)
        return asyncio.run(_bridge(far))


def _settings(given: str) -> AgentSettings:
    """The agent with this URL or name."""
    from accord_tools.configuration.agent_settings import AgentSettings
    from accord_tools.configuration.resolve_agent import UnknownAgent, resolve

    if scheme_of(given):
        return AgentSettings(url=given)
    try:
        settings = resolve(given)
    except UnknownAgent:
        raise WrongUsage(f"{given} is neither a URL nor the name of an agent") from None
    if settings.url is None:
        raise WrongUsage(f"{given} is a command, which an editor can start itself; a bridge is for an agent with a URL")
    return settings


async def _bridge(far: Transport) -> int | None:
    from accord import StdioTransport
    from accord.transports.wrapped_transport import relay

    near = StdioTransport.standard()
    joined = asyncio.ensure_future(relay(near, far))
    try:
        with on_signals([signal.SIGTERM], joined.cancel):
            first, end = await joined
    except asyncio.CancelledError:
        return None
    if near.output_error is not None:
        raise output_error(near.output_error)
    if first is not far:
        return None
    print(f"accord bridge: {one_line(end.error())}", file=sys.stderr)
    return FAILED
