"""`accord inspect`: shows traces in a browser."""

from __future__ import annotations

import argparse
import asyncio
import signal
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from accord.program import on_signals
from accord_tools.cli.agent_options import ABOUT_RECORDED, LocalCommand, agent_arguments, local_command
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_line
from accord_tools.cli.exit_codes import WrongUsage
from accord_tools.cli.trace_options import record_agent

if TYPE_CHECKING:
    from accord_tools.inspector.inspector_app import StartedAgent

EPILOG = """\
examples:
  accord inspect wire.jsonl                 a trace, even one that is still being written
  accord inspect before.jsonl after.jsonl   two traces, to compare them
  accord inspect                            all kept traces; live ones come first
  accord inspect export wire.jsonl --html wire.html    one file that shows the trace in any browser
  accord inspect -- gemini --acp            in an editor's settings, instead of the agent's command: records it, like
                                            accord trace; `accord inspect` then shows it live
  accord inspect --send -- my-agent         starts an agent, and sends it requests by forms

The page is at a URL of this machine, with a secret token. Nothing leaves the machine. The page never writes a trace.
With --send it also sends the contents of its forms, only to the agent that it has started. Ctrl-C ends it.

A trace holds private messages, and so does an exported file: only recognisable secrets are masked in it. Read it
before you share it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = (
        "accord inspect [options] [FILE...]\n"
        "       accord inspect [--send] -- COMMAND...\n"
        "       accord inspect export FILE --html PAGE [--secrets]"
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="traces, as --trace and accord trace write them")
    option(parser, "--port PORT", "the port; 0 chooses a free one (default: %(default)s)", default="0")
    option(parser, "--open", "open the page in the browser")
    option(parser, "--send", "start the agent, and send it messages from the page")
    option(parser, "--html PAGE", "with export: the file to write")
    option(parser, "--secrets", "with export: do not mask recognisable secrets")
    agent_arguments(parser, is_remote=False, about=ABOUT_RECORDED)


def run(options: argparse.Namespace) -> int | None:
    words: list[str] = options.files
    if options.send:
        if words or not (options.agent or options.named is not None):
            raise WrongUsage("--send starts an agent: accord inspect --send -- COMMAND, without traces")
        with suppress(KeyboardInterrupt):
            asyncio.run(_inspect_live(local_command(options), _port(options.port), opens=options.open))
    elif options.agent or options.named is not None:
        return _record(options)
    elif words[:1] == ["export"]:
        _export(words[1:], options.html, secrets=options.secrets)
    elif options.html or options.secrets:
        raise WrongUsage("--html and --secrets belong to export: accord inspect export FILE --html PAGE")
    else:
        with suppress(KeyboardInterrupt):
            asyncio.run(_inspect(_files(words), _port(options.port), opens=options.open))
    return None


def _record(options: argparse.Namespace) -> int:
    """Run an agent behind a tap, as an editor starts it; nothing is printed, because the editor reads the output."""
    from accord_tools.tap.recorder_protocol import RecordingPlan

    if options.files:
        raise WrongUsage("name traces to show, or an agent after -- to record; not both")
    return record_agent("accord inspect", local_command(options), RecordingPlan())


async def _inspect_live(command: LocalCommand, port: int, *, opens: bool) -> None:
    """Show the trace of an agent that is started for it, and send it the page's messages."""
    from accord_tools.inspector.inspector_app import starting_agent

    async with starting_agent(command.words, command.cwd, command.env) as (agent, trace):
        await _inspect([trace], port, opens=opens, agent=agent)


async def _inspect(files: list[Path], port: int, *, opens: bool, agent: StartedAgent | None = None) -> None:
    from accord_tools.inspector.inspector_app import inspecting
    from accord_tools.inspector.library import Library

    library = Library(files, kept=agent is None)
    ended = asyncio.Event()
    with on_signals((signal.SIGINT, signal.SIGTERM), ended.set):
        async with inspecting(library, port=port, agent=agent) as inspector:
            print_line(f"The inspector is at {inspector.url}")
            if opens:
                webbrowser.open(inspector.url)
            await ended.wait()


def _files(words: list[str]) -> list[Path]:
    files = [Path(word) for word in words]
    for file in files:
        if not file.is_file():
            raise WrongUsage(f"no such trace: {file}")
    return files


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise WrongUsage(f"--port must be a number up to 65535, got {text!r}")
    return int(text)


def _export(words: list[str], page: str | None, *, secrets: bool) -> None:
    from accord_tools.inspector.export import export_html

    files = _files(words)
    if len(files) != 1 or page is None:
        raise WrongUsage("name one trace and the file to write: accord inspect export FILE --html PAGE")
    count = export_html(files[0], Path(page), secrets=secrets)
    print_line(f"Wrote {page}: {count:,} messages. It holds all that was said: read it before you share it.")
