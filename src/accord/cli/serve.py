"""`accord serve`: an agent for clients that come over HTTP and WebSocket."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from accord.cli import printing, tokens
from accord.cli.endings import ENDED_WELL, WrongUsage

if TYPE_CHECKING:
    from accord.http.server.hosting import Hosted
    from accord.http.server.limits import ServerLimits
    from accord.http.server.serve import Server

SUMMARY = "Host an agent over HTTP and WebSocket, with a process for each connection."
EPILOG = """\
examples:
  accord serve                                        the built-in agent, at http://127.0.0.1:8000/acp
  accord serve --port 9000 -- gemini --acp            any agent, by its command
  ACCORD_TOKEN=s3cret accord serve --host 0.0.0.0 --certificate tls.pem --key tls.key -- my-agent
  accord serve --limit connections=50 --log-format json -- my-agent

Clients reach it by that URL (HTTP/1.1 or HTTP/2), or with ws: in place of http: by WebSocket:
  accord run "Say hello" -- http://127.0.0.1:8000/acp
  accord bridge ws://127.0.0.1:8000/acp               for editors that start agents as commands

Whoever reaches an agent can usually run programs where it lives. So it listens on this machine only, answers no
pages of browsers, and does not listen elsewhere without a token. An agent's process finds the owner of its
connection's token in the variable ACCORD_OWNER.

Ctrl-C, or SIGTERM, ends it in order: no more connections, prompts get --grace, clients are told. Once more ends it
at once. http://127.0.0.1:8000/healthz answers 200, and 503 while it ends.

limits, and what they are if nothing is said (sizes in bytes, times in seconds):
{limits}"""

LIMITS = {
    "body": "the size of a message",
    "sockets": "TCP connections",
    "connections": "connections of the protocol",
    "sessions": "open sessions of one connection",
    "requests": "requests on one connection that wait for an answer",
    "processes": "agent processes, where each connection has one",
    "owner_processes": "agent processes of one owner",
    "bodies": "bodies of requests that arrive or wait, in all",
    "waiting": "bodies of one connection that wait while its agent reads nothing",
    "streams": "event streams of one connection",
    "unread": "what may wait for a client before its agent waits",
    "kept": "what is kept for a stream that broke",
    "keepalive": "silence on a stream before a sign of life",
    "heartbeat": "silence on a WebSocket before a ping; after three times as long it ends",
    "stalled": "how long messages may wait without one being read",
    "abandoned": "how long a connection lasts without a stream and without a request",
    "handshake": "how long a TLS handshake may take",
    "idle": "how long a TCP connection lasts without a request",
    "arrival": "how long a request's body may take",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG.format(limits="\n".join(_limit_lines()))
    parser.usage = "accord serve [options] [-- AGENT...]"
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", default="8000", help="the port; 0 is any that is free (default: %(default)s)")
    parser.add_argument(
        "--token-file", metavar="FILE", help="let in who has a token of this file; each line is TOKEN, or TOKEN OWNER"
    )
    parser.add_argument(
        "--origin", action="append", default=[], metavar="URL", help="let in pages of this origin; may be repeated"
    )
    parser.add_argument("--certificate", metavar="FILE", help="serve https with this certificate (PEM)")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key, if it is not in the same file")
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=NUMBER", help="a limit (see below); may be repeated"
    )
    parser.add_argument(
        "--grace", default="10", metavar="S", help="seconds that running prompts have at the end (default: %(default)s)"
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json", "none"),
        default="text",
        help="a line on standard error for each request and connection (default: %(default)s)",
    )
    parser.add_argument("--verbose", action="store_true", help="tell more about connections on standard error")
    parser.set_defaults(agent=None)


def _limit_lines() -> list[str]:
    from accord.http.server.limits import ServerLimits

    defaults = ServerLimits()
    values = {name: getattr(defaults, name) for name in LIMITS}
    shown = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    return [f"  {f'{name}={shown[name]}':22}{explained}" for name, explained in LIMITS.items()]


def run(options: argparse.Namespace) -> int:
    from accord.http.server.access import Access, names_of
    from accord.http.server.serve import serve

    known = tokens.owners(options.token_file)
    tokens.forget()
    names = names_of(options.host)
    if names is None and not known:
        raise WrongUsage(f"{options.host} can be reached from elsewhere: set {tokens.VARIABLE}, or name a --token-file")
    if options.key and not options.certificate:
        raise WrongUsage("--key goes with --certificate")
    port = int(_number("--port", options.port, most=65535))
    grace = _number("--grace", options.grace)
    limits = _limits(options.limit)
    access = Access(known or None, origins=[_origin(given) for given in options.origin], hosts=names)
    hosted = _hosted(options.agent)
    _log(options.log_format, verbose=options.verbose)
    _allow_files(2 * limits.sockets)
    asyncio.run(
        serve(
            hosted,
            host=options.host,
            port=port,
            access=access,
            certificate=options.certificate,
            key=options.key,
            limits=limits,
            grace=grace,
            on_ready=_say_where,
        )
    )
    return ENDED_WELL


def _allow_files(wanted: int) -> None:
    """Let this process have so many open files, as far as it may: each client is one, and shells allow a thousand."""
    try:
        import resource
    except ImportError:  # Windows, where there is no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _number(what: str, text: str, most: float = 10**12) -> float:
    try:
        number = float(text)
    except ValueError:
        raise WrongUsage(f"{what} is a number, and not {text!r}") from None
    if not 0 <= number <= most:
        raise WrongUsage(f"{what} is between 0 and {most:,.0f}, and not {text}")
    return number


def _limits(given: list[str]) -> ServerLimits:
    from accord.http.server.limits import ServerLimits

    found: dict[str, Any] = {}
    for setting in given:
        name, is_set, text = setting.partition("=")
        if name not in LIMITS or not is_set:
            raise WrongUsage(f"--limit is NAME=NUMBER, and the names are {', '.join(LIMITS)}; not {setting!r}")
        number = _number(f"--limit {name}", text)
        found[name] = number if isinstance(getattr(ServerLimits(), name), float) else int(number)
    try:
        return ServerLimits(**found)
    except ValueError as error:
        raise WrongUsage(str(error)) from None


def _origin(given: str) -> str:
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
        raise WrongUsage(f"--origin is like https://app.example, and not {given!r}")
    return given


def _log(form: str, *, verbose: bool) -> None:
    from accord.http.server.access_log import FORMATS

    handler = logging.StreamHandler()
    handler.setFormatter(FORMATS.get(form, FORMATS["text"])())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
    logging.getLogger("accord.http.access").setLevel(logging.WARNING if form == "none" else logging.INFO)


def _hosted(agent: list[str] | None) -> Hosted:
    if not agent:
        from accord.demo import demo_agent

        return demo_agent()
    if "://" in agent[0]:
        raise WrongUsage(f"{agent[0]} is served already; an agent that is a command can be")
    if shutil.which(agent[0]) is None:
        raise WrongUsage(f"there is no program {agent[0]}")
    from accord.http.server.hosting import CommandHost

    return CommandHost(agent)


def _say_where(server: Server) -> None:
    name = " ".join(server.app.host.name.split())  # a command may have lines
    printing.say(f"Serving {name} at {server.url}")
