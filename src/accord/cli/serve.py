"""`accord serve`: an agent for clients that come over HTTP and WebSocket."""

from __future__ import annotations

import argparse
import asyncio
import logging
from typing import TYPE_CHECKING

from accord.cli import tokens
from accord.cli.endings import ENDED_WELL, WrongUsage

if TYPE_CHECKING:
    from accord.http.hosting import Hosted
    from accord.http.server import Server

SUMMARY = "Host an agent over HTTP and WebSocket, with a process for each connection."
EPILOG = """\
examples:
  accord serve                                        the built-in agent, at http://127.0.0.1:8000/acp
  accord serve --port 9000 -- gemini --acp            any agent, by its command
  ACCORD_TOKEN=s3cret accord serve --host 0.0.0.0 --certificate tls.pem --key tls.key -- my-agent

Clients reach it by that URL (HTTP/1.1 or HTTP/2), or with ws: in place of http: by WebSocket:
  accord run "Say hello" -- http://127.0.0.1:8000/acp
  accord bridge ws://127.0.0.1:8000/acp               for editors that start agents as commands

Whoever reaches an agent can usually run programs where it lives. So it listens on this machine only, answers no
pages of browsers, and does not listen elsewhere without a token. Ctrl-C, or SIGTERM, ends it in order."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.usage = "accord serve [options] [-- AGENT...]"
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="the port; 0 is any that is free (default: %(default)s)")
    parser.add_argument(
        "--token-file", metavar="FILE", help="let in who has a token of this file; each line is TOKEN, or TOKEN OWNER"
    )
    parser.add_argument(
        "--origin", action="append", default=[], metavar="URL", help="let in pages of this origin; may be repeated"
    )
    parser.add_argument("--certificate", metavar="FILE", help="serve https with this certificate (PEM)")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key, if it is not in the same file")
    parser.add_argument("--verbose", action="store_true", help="tell about connections on standard error")
    parser.set_defaults(agent=None)


def run(options: argparse.Namespace) -> int:
    from accord.http.access import LOOPBACK, Access, is_loopback
    from accord.http.server import serve

    known = tokens.owners(options.token_file)
    local = is_loopback(options.host)
    if not (local or known):
        raise WrongUsage(f"{options.host} can be reached from elsewhere: set {tokens.VARIABLE}, or name a --token-file")
    if options.key and not options.certificate:
        raise WrongUsage("--key goes with --certificate")
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, format="%(message)s")
    access = Access(known, origins=options.origin, hosts=LOOPBACK if local else None)
    asyncio.run(
        serve(
            _hosted(options.agent),
            host=options.host,
            port=options.port,
            access=access,
            certificate=options.certificate,
            key=options.key,
            on_ready=_say_where,
        )
    )
    return ENDED_WELL


def _hosted(agent: list[str] | None) -> Hosted:
    if not agent:
        from accord.demo import demo_agent

        return demo_agent()
    if "://" in agent[0]:
        raise WrongUsage(f"{agent[0]} is served already; an agent that is a command can be")
    return agent


def _say_where(server: Server) -> None:
    print(f"Serving {server.app.host.name} at {server.url}", flush=True)
