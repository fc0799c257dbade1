"""`accord serve`: serves an agent over HTTP and WebSocket."""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from accord.program import STORE, run as run_loop
from accord.transports.launch import program_file
from accord_tools.cli.agent_options import (
    TOKEN_VARIABLE,
    LocalCommand,
    agent_arguments,
    forget_token,
    settings_of,
    token_owners,
)
from accord_tools.cli.command_table import option
from accord_tools.cli.console import for_people, print_error, print_line
from accord_tools.cli.exit_codes import ENDED_WELL, WrongUsage
from accord_tools.cli.serve_options import (
    confinement_arguments,
    container_of,
    hosts_arguments,
    hosts_of,
    keep_sessions_in,
    made_of,
    number_of,
    process_count,
    process_limits_of,
    quota_arguments,
    quota_lines,
    quotas_of,
    run_processes,
    shared_host,
    sharing_arguments,
)
from accord_tools.cli.trace_options import recorded_trace, trace_arguments

if TYPE_CHECKING:
    from accord.http import Host, Observer, Server, ServerLimits
    from accord_tools.configuration.agent_settings import AgentSettings

EPILOG = """\
examples:
  accord serve                                        the built-in agent, at http://127.0.0.1:8000/acp
  accord serve --port 9000 -- gemini --acp            any agent, by its command
  accord serve my_agent.py --reload                   an agent of a Python file, while you write it
  accord serve gemini                                 an agent that `accord agents` lists
  ACCORD_TOKEN=s3cret accord serve --host 0.0.0.0 --certificate tls.pem --key tls.key -- my-agent
  accord serve --limit connections=50 --log-format json -- my-agent
  accord serve --processes 4 -- my-agent              use four cores; limits count for each process
  accord serve --memory 2G --cpus 2 -- my-agent       limits for each agent with its child processes
  accord serve --shared -- my-agent                   several clients use one session together

Clients reach it by that URL (HTTP/1.1, and HTTP/2 with the extra http2), or with ws: in place of http: by WebSocket:
  accord run "Say hello" -- http://127.0.0.1:8000/acp
  accord bridge ws://127.0.0.1:8000/acp               for editors that start agents as commands

Clients of an agent can usually run programs on its machine. So the server listens on this machine only, refuses
requests from browser pages, and requires a token to listen elsewhere. The agent's process finds the owner of its
connection's token in the variable ACCORD_OWNER.

Ctrl-C or SIGTERM ends it in order: no more connections, prompts get --grace, clients are told. A second one ends it
at once. http://127.0.0.1:8000/readyz answers 200 while new sessions can be opened, and else 503 with the reason;
/healthz answers 200, and 503 while it shuts down.

limits and their defaults (sizes in bytes, times in seconds):
{limits}

quotas, without defaults:
{quotas}"""

log = logging.getLogger("accord.serve")

LIMITS = {
    "body": "the size of a message",
    "opening": "the size of a client's first message",
    "sockets": "open TCP connections",
    "connections": "open connections of the protocol",
    "sessions": "open sessions of one connection",
    "requests": "unanswered requests of one connection",
    "processes": "running agent processes, if each connection has its own",
    "owner_processes": "running agent processes of one owner",
    "bodies": "large bodies of all requests that are arriving or waiting",
    "waiting": "bodies that wait on one connection while its agent reads nothing",
    "streams": "event streams of one connection",
    "unread": "output that may wait before the agent is paused",
    "kept": "messages kept to resume broken streams of one connection",
    "keepalive": "silence on a stream before a comment is sent",
    "heartbeat": "silence on a WebSocket or HTTP/2 before a ping; it is closed after three times as long",
    "reopen": "silence on an event stream before it ends, for clients that open it again",
    "stalled": "how long messages may wait without the client reading any",
    "abandoned": "how long a connection stays open without a stream and a request",
    "handshake": "how long a TLS handshake may take",
    "idle": "how long a TCP connection stays open without a request",
    "arrival": "how long a request's body may take to arrive",
}


TAKEN_PATHS = ("/acp", "/healthz", "/readyz")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG.format(limits="\n".join(_limit_lines()), quotas=quota_lines())
    parser.usage = "accord serve [options] [AGENT | -- COMMAND...]"
    option(parser, "--host HOST", "the address to listen on (default: %(default)s)", default="127.0.0.1")
    option(parser, "--port PORT", "the port; 0 chooses a free one (default: %(default)s)", default="8000")
    option(
        parser,
        "--token-file FILE",
        "accept the bearer tokens of this file; each line is TOKEN, or TOKEN OWNER, "
        "or TOKEN OWNER observer for a token that may only watch",
    )
    option(parser, "--origin URL...", "accept requests of browser pages of this origin; may be repeated")
    option(
        parser,
        "--allow-host NAME...",
        "answer requests whose Host header has this name; without it a server on the loopback answers to its "
        "names, and any other to all; may be repeated",
    )
    option(
        parser,
        "--trusted-proxy ADDRESS...",
        "log the client that a proxy at this address or in this network names (X-Forwarded-For); may be repeated",
    )
    option(parser, "--certificate FILE", "serve https with this certificate (PEM)")
    option(parser, "--key FILE", "the certificate's key, if it is not in the same file")
    option(parser, "--limit NAME=NUMBER...", "set a limit (see below); may be repeated")
    option(parser, "--grace S", "seconds that running prompts have at the end (default: %(default)s)", default="10")
    option(
        parser,
        "--log-format",
        "the form of the log on standard error (default: %(default)s)",
        choices=("text", "json", "none"),
        default="text",
    )
    parser.add_argument(
        "--metrics",
        nargs="?",
        const="/metrics",
        metavar="PATH",
        help="serve metrics for Prometheus at this path (default: %(const)s), to everyone who may use the server",
    )
    option(parser, "--verbose", "log more about connections")
    option(parser, "--reload", "for a Python file: end the connections when a file beside it changes")
    quota_arguments(parser)
    confinement_arguments(parser)
    hosts_arguments(parser)
    sharing_arguments(parser)
    trace_arguments(parser, "the messages of all connections")
    agent_arguments(parser, is_argument=True, is_remote=False)


def _limit_lines() -> list[str]:
    from accord.http import ServerLimits

    defaults = ServerLimits()
    values = {name: getattr(defaults, name) for name in LIMITS}
    shown = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    return [f"  {f'{name}={shown[name]}':22}{explained}" for name, explained in LIMITS.items()]


def run(options: argparse.Namespace) -> int:
    from accord.http import Access, serve

    count = process_count(options)
    known = token_owners(options.token_file)
    forget_token()
    names = Access.loopback_names(options.host)
    if names is None and not known:
        raise WrongUsage(f"--host {options.host} is not a loopback address: set {TOKEN_VARIABLE} or --token-file")
    if options.key and not options.certificate:
        raise WrongUsage("--key requires --certificate")
    port = int(number_of("--port", options.port, most=65535))
    grace = number_of("--grace", options.grace)
    limits = _limits(options.limit)
    names = frozenset((*(names or ()), *options.allow_host)) or None
    try:
        access = Access(
            known or None,
            origins=[_origin(given) for given in options.origin],
            hosts=names,
            proxies=options.trusted_proxy,
        )
    except ValueError as error:
        raise WrongUsage(f"--trusted-proxy: {error}") from None
    settings = settings_of(options)
    keep_sessions_in(options)
    if options.reload and options.shared:
        raise WrongUsage("--reload does not go with --shared: a shared agent keeps running when its connections end")
    hosted = shared_host(_hosted(settings, options), options)
    watched = _watched(settings) if options.reload else None
    _log(options.log_format, verbose=options.verbose)
    _allow_files(2 * limits.sockets)
    serving: Callable[..., Coroutine[Any, Any, None]] = functools.partial(
        serve,
        host=options.host,
        port=port,
        access=access,
        certificate=options.certificate,
        key=options.key,
        limits=limits,
        quotas=quotas_of(options.quota),
        grace=grace,
    )
    if count > 1:
        if options.metrics is not None:
            serving = _measured(options.metrics, serving, is_one_of_several=True)

        def say(url: str) -> None:
            print_line(f"Serving {_one_line(hosted.name)} with {count} processes at {url}")
            shared = [] if options.hosts is None else [("hosts", f"listed in {options.hosts}")]
            _print_summary(options, [*_summary(options, url, known, names), *shared])

        return run_processes(count, options, functools.partial(_served, functools.partial(serving, hosted)), say)

    def say_where(server: Server) -> None:
        print_line(f"Serving {_one_line(server.app.host.name)} at {server.url}")
        _print_summary(options, [*_summary(options, server.url, known, names), *_hosts_summary(options, server)])

    alone: Callable[..., Coroutine[Any, Any, None]] = functools.partial(
        serving, hosts=hosts_of(options), on_ready=say_where
    )
    if options.metrics is not None:
        alone = _measured(options.metrics, alone, is_one_of_several=options.hosts is not None)
    words = [] if settings is None else settings.words
    with recorded_trace(options, "accord serve", role="agent", peer="clients", agent=words) as trace:
        if trace is not None:
            from accord_tools.cli.host_wrappers import RecordedHost

            hosted = RecordedHost(hosted, trace)
        run_loop(alone(hosted) if watched is None else _reloading(hosted, watched, alone))
    return ENDED_WELL


def _served(serving: Callable[..., Coroutine[Any, Any, None]], **more: Any) -> None:
    run_loop(serving(**more))


def _measured(
    path: str, serving: Callable[..., Coroutine[Any, Any, None]], *, is_one_of_several: bool
) -> Callable[..., Coroutine[Any, Any, None]]:
    """Serve with metrics at a path; those of one process of several name it."""
    from accord.http import MeasuredHost
    from accord.metrics import ServerMetrics

    if not re.fullmatch(r"(/[\w.~-]+)+", path) or path in TAKEN_PATHS:
        raise WrongUsage(
            f"--metrics must be a path such as /metrics, and none of {', '.join(TAKEN_PATHS)}; got {path!r}"
        )

    def measured(hosted: Host, **more: Any) -> Coroutine[Any, Any, None]:
        # Now, in the process that serves, and not in the one from which it was forked.
        host = f"{socket.gethostname()}:{os.getpid()}" if is_one_of_several else ""
        return serving(MeasuredHost(hosted, ServerMetrics(host=host, path=path)), **more)

    return measured


async def _reloading(hosted: Host, folder: Path, serving: Callable[[Host], Coroutine[Any, Any, None]]) -> None:
    """Serve, and end the connections whenever a file below this folder changes."""
    from accord_tools.cli.host_wrappers import ReloadingHost, end_on_change
    from accord_tools.cli.watched_files import WatchedFiles

    def tell(file: str, ended: int) -> None:
        print_error(f"accord serve: {file} has changed; connections ended: {ended}")

    host = ReloadingHost(hosted)
    watching = asyncio.create_task(end_on_change(host, WatchedFiles(folder), tell), name="accord reload")
    try:
        await serving(host)
    finally:
        watching.cancel()
        await asyncio.wait([watching])


def _watched(settings: AgentSettings | None) -> Path:
    from accord_tools.configuration.resolve_agent import python_file

    file = None if settings is None else python_file(settings)
    if file is None:
        raise WrongUsage("--reload is for an agent of a Python file: accord serve my_agent.py --reload")
    return file.absolute().parent


def _allow_files(wanted: int) -> None:
    """Raise the limit of open files to `wanted` if permitted: each client needs one, and shells allow about 1,000."""
    if sys.platform == "win32":  # which has no such limit
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _limits(given: list[str]) -> ServerLimits:
    from accord.http import ServerLimits

    fractions = [name for name in LIMITS if isinstance(getattr(ServerLimits(), name), float)]
    return made_of("--limit", given, LIMITS, ServerLimits, fractions)


def _origin(given: str) -> str:
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
        raise WrongUsage(f"--origin must be like https://app.example, got {given!r}")
    return given


def _log(form: str, *, verbose: bool) -> None:
    from accord.http import log_formatter

    handler = logging.StreamHandler()
    handler.setFormatter(log_formatter("json" if form == "json" else "text"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
    log.setLevel(logging.INFO)
    logging.getLogger("accord.http.access").setLevel(logging.WARNING if form == "none" else logging.INFO)


def _hosted(settings: AgentSettings | None, options: argparse.Namespace) -> Host:
    limits, container = process_limits_of(options), container_of(options)
    if settings is None:
        if limits is not None or container is not None:
            raise WrongUsage(
                "the built-in agent runs in the server, so only the server as a whole can be limited; "
                "name an agent's command: accord serve --memory 2G -- my-agent"
            )
        from accord.http import Host
        from accord_tools.demo import demo_agent

        return Host.of(demo_agent())
    command = LocalCommand.of(settings, "only a command can be served")
    if container is None and program_file(command.words[0], path=command.env.get("PATH")) is None:
        raise WrongUsage(f"program not found: {command.words[0]}")
    from accord.http import CommandHost

    return CommandHost(command.words, cwd=command.cwd, env=command.env, limits=limits, container=container)


def _summary(
    options: argparse.Namespace, url: str, known: Mapping[str, str | Observer], names: Collection[str] | None
) -> list[tuple[str, str]]:
    """Print what an operator checks at a start. It names no token."""
    base = url.removesuffix("/acp")
    rows = [("ready", f"{base}/readyz")]
    if options.metrics is not None:
        rows.append(("metrics", base + options.metrics))
    rows.append(("names", "any Host header" if names is None else ", ".join(sorted(names))))
    owners = {owner for owner in known.values() if isinstance(owner, str)}
    watching = len(known) - sum(isinstance(owner, str) for owner in known.values())
    counts = f"{len(known):,} (owners: {len(owners):,}, observers: {watching:,})"
    rows.append(("tokens", counts if known else "none, so every client is accepted"))
    rows.append(("store", os.environ.get(STORE) or "the agent's choice"))
    return rows


def _hosts_summary(options: argparse.Namespace, server: Server) -> list[tuple[str, str]]:
    if (cluster := server.app.cluster) is None:
        return []
    joined = f"{cluster.living:,} in {options.hosts}; this one is {cluster.id}"
    return [("hosts", joined), ("peers", f"reach this host at {cluster.address}")]


def _print_summary(options: argparse.Namespace, rows: list[tuple[str, str]]) -> None:
    if options.log_format == "json":
        log.info("%s", for_people("; ".join(f"{name}: {text}" for name, text in rows)))
    if options.log_format != "text":
        return
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    for name, text in rows:
        print_error(f"  {name:9}{text}" if is_terminal else f"accord serve: {name}: {text}")


def _one_line(name: str) -> str:
    return " ".join(name.split())  # a command may have several lines
