"""`accord conduct`: joins proxies and an agent to one agent, for editors that only start commands."""

from __future__ import annotations

import argparse
import select
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord import AccordError, ConfigurationError
from accord.program import run_until_the_end
from accord.proxy import ComponentFailure, JsonsFile, conduct_standard_streams, read_component
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error
from accord_tools.cli.exit_codes import FAILED, WrongUsage, one_line
from accord_tools.cli.trace_options import recorded_trace, trace_arguments

if TYPE_CHECKING:
    from accord import Target
    from accord.trace import Observer

EPILOG = """\
Each COMPONENT is one argument: a command with its own arguments in quotes, a URL, a Python file, the name of an agent,
or a JSON object. The last one is the agent; those before it are proxies, the first next to the client.

examples:
  accord conduct "python house_rules.py" "gemini --acp"
  accord conduct rules.py:proxy redact.py claude-agent-acp --trace chain.jsonl
  accord conduct '{"command": "python", "args": ["rules.py"], "env": {"LANG": "C"}}' "gemini --acp"
  accord conduct --as-proxy "python a.py" "python b.py"     two proxies that are one component of another chain

Name it in an editor's settings as the agent's command. `accord conduct agent COMPONENT...` and `accord conduct proxy
COMPONENT...` do the same as without and with --as-proxy: the conductor of the Rust SDK is used in that form.

A proxy can read and change everything, and runs as you. Messages are passed on unchanged unless a proxy changes them.
The components start with the client's first message, and end with the client. If one of them ends first, each request
is answered with an error that names it, the exit status is 1, and the reason is on standard error."""

MODES = {"agent": False, "proxy": True}
"""The words of the Rust SDK's conductor, and whether they mean --as-proxy."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "accord conduct [--as-proxy] [--trace FILE] COMPONENT..."
    parser.add_argument(
        "components", nargs="*", metavar="COMPONENT", help="a proxy, or the agent at the end; see below"
    )
    option(parser, "--as-proxy", "all components are proxies, and this is one component of a chain")
    trace_arguments(parser, "what the components send each other (FILE.jsons: as the Rust SDK's conductor does)")
    option(
        parser,
        "--no-bridge",
        "do not bridge MCP servers of the client and of proxies to an agent that supports none over ACP",
    )
    option(parser, "-n --name NAME", "the name of this chain in errors (default: accord conduct)")
    parser.set_defaults(takes_agent=True)


def run(options: argparse.Namespace) -> int | None:
    name = options.name or "accord conduct"
    given, as_proxy = _mode([*options.components, *options.agent], as_proxy=options.as_proxy)
    if not given and not as_proxy:
        raise WrongUsage("name at least one component: accord conduct [PROXY...] AGENT; see accord conduct --help")
    targets = [_target(written, place, place < len(given) or as_proxy) for place, written in enumerate(given, 1)]
    ended: list[ComponentFailure | None] = []
    peer = " | ".join(it.name for it in targets)
    with _recorded(options, name, peer) as trace:

        async def serve() -> None:
            bridge = not options.no_bridge
            ended.append(await conduct_standard_streams(targets, as_proxy=as_proxy, observer=trace, bridge=bridge))

        run_until_the_end(serve(), name, uvloop=None)
    if (failure := ended[0] if ended else None) is not None:
        print_error(f"{name}: {one_line(AccordError(str(failure)))}")
        return FAILED
    return None


@contextmanager
def _recorded(options: argparse.Namespace, name: str, peer: str) -> Generator[Observer | None]:
    """The recording that `--trace` names: our trace, or one in the form of the Rust SDK's conductor."""
    if options.trace is None or not options.trace.endswith(JsonsFile.SUFFIX):
        with recorded_trace(options, name, role="conductor", peer=peer) as trace:
            yield trace
        return
    try:
        file = JsonsFile(options.trace, secrets=options.trace_secrets)
    except AccordError as error:
        raise WrongUsage(f"--trace: {error}") from error
    try:
        yield file
    finally:
        file.close()
        if file.problem is not None:
            problem = file.problem.strerror or file.problem
            print_error(f"{name}: --trace {options.trace} is incomplete: {problem}")


def _mode(words: Sequence[str], *, as_proxy: bool) -> tuple[Sequence[str], bool]:
    """Return the components, and whether they are all proxies; the first word may be one of `MODES`."""
    if words and words[0] in MODES:
        return words[1:], as_proxy or MODES[words[0]]
    return words, as_proxy


def _target(written: str, place: int, is_proxy: bool) -> Target:
    try:
        return read_component(written, _teller(f"proxy {place}" if is_proxy else "agent"))
    except ConfigurationError as error:
        raise WrongUsage(f"component {place}: {error}") from error


def _teller(name: str) -> Callable[[str], object]:
    """Return the function that prints a component's standard error; it drops lines that the reader of ours has no room
    for.
    """
    left_out = 0

    def tell(line: str) -> None:
        nonlocal left_out
        if not _has_room():
            left_out += 1
            return
        if left_out:
            print_error(f"{name}: ({left_out} lines were left out)")
            left_out = 0
        print_error(f"{name}: {line[:LONGEST]}")

    return tell


LONGEST = 1_000
"""Characters of a line. A pipe that has room has 4 KiB, and a character has up to four bytes."""


def _has_room() -> bool:
    """Whether standard error has room for a line now. An editor that does not read it must not stop the chain."""
    if sys.platform == "win32" or sys.stderr is None:
        return True
    room = select.poll()
    room.register(sys.stderr, select.POLLOUT)
    return bool(room.poll(0))
