"""`accord bridge`: an agent behind a URL as a command, for editors that only know commands."""

from __future__ import annotations

import argparse
import asyncio
import signal
import ssl
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from accord.cli import printing, tokens
from accord.cli.endings import ENDED_WELL, FAILED, WrongUsage, one_line

if TYPE_CHECKING:
    from accord.transports.base import Transport

SUMMARY = "Make an agent behind a URL a local one, which speaks over standard input and output."
EPILOG = """\
Name it in an editor's settings as the agent's command:
  accord bridge https://agents.example/acp --token-file ~/.agent-token
  accord bridge ws://127.0.0.1:8000/acp

Messages are handed on as they are. Files and terminals that the agent asks for are the editor's, on this machine.
It ends when the editor closes its input, or when the agent's side ends: then with 1, and why on standard error."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("url", metavar="URL", help="http, https, ws or wss")
    parser.add_argument("--token-file", metavar="FILE", help=tokens.HELP)
    parser.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="send this as well; may be repeated"
    )
    parser.add_argument("--ca", metavar="FILE", help="trust the certificates of this file (PEM) as well")


def run(options: argparse.Namespace) -> int:
    from accord.http.client.urls import connect_transport
    from accord.transports.stdio import fill_closed_streams

    far = connect_transport(
        options.url,
        token=tokens.token(options.token_file),
        headers=dict(_header(it) for it in options.header),
        tls=_tls(options.ca),
    )
    fill_closed_streams()
    return asyncio.run(_bridge(far))


async def _bridge(far: Transport) -> int:
    from accord.transports.relay import relay
    from accord.transports.stdio import StdioTransport

    near = StdioTransport.standard()
    joined = asyncio.ensure_future(relay(near, far))
    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, joined.cancel)
    try:
        first, end = await joined
    except asyncio.CancelledError:
        return ENDED_WELL
    if near.output_error is not None:
        raise printing.lost(near.output_error)
    if first is not far:
        return ENDED_WELL
    print(f"accord bridge: {one_line(end.error())}", file=sys.stderr)
    return FAILED


def _header(given: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    if not (name.strip() and colon):
        raise WrongUsage(f"{given!r} is no header: write 'Name: value'")
    return name.strip(), value.strip()


def _tls(file: str | None) -> ssl.SSLContext | None:
    if file is None:
        return None
    trusted = ssl.create_default_context()
    try:
        trusted.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise WrongUsage(f"cannot read the certificates in {file}: {error.strerror}") from error
    return trusted
