"""`accord doctor`: checks the installation, plug-ins, the terminal, node, npm, uv, the configuration and the agents."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from accord import ConfigurationError, __version__
from accord.installation import (
    AGENTS,
    COMMANDS,
    EXTENSIONS,
    PACKAGES,
    STORES,
    TRANSPORTS,
    PluginError,
    install_command,
    load_plugin,
    plugins,
)
from accord.paths import state_folder
from accord.transports.launch import program_file
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_json, print_line, print_table
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED

if TYPE_CHECKING:
    from accord_tools.configuration.agents_file import AgentsFile
    from accord_tools.configuration.resolve_agent import KnownAgents

EPILOG = """\
A line is `ok`, `optional` for a part that you may add, or `broken` for something that you have set
and that cannot work; then the exit code is 1, and the remedies are at the end. No agent is
started: `accord info AGENT` does that."""

MODULES = {
    extra: [name for name, its in PACKAGES.items() if its == extra] for extra in dict.fromkeys(PACKAGES.values())
}
"""The modules of each extra."""
FOR = {
    "agent": "accord agent",
    "claude-agent-sdk": "agents of the Claude Agent SDK",
    "official-sdk": "programs of the official Python SDK",
    "cli": "accord chat",
    "http": "agents behind URLs, accord serve, accord bridge",
    "http2": "the same over HTTP/2",
    "langgraph": "agents of LangGraph",
    "llama-index": "agents of LlamaIndex",
    "mcp": "agents that use MCP servers",
    "openai-agents": "agents of the OpenAI Agents SDK",
    "otel": "spans of OpenTelemetry",
    "patterns": "patterns in forms, and searches of the coding agent",
    "postgres": "sessions in PostgreSQL",
    "pydantic-ai": "agents of Pydantic AI",
    "uvloop": "a faster event loop",
}

State = Literal["ok", "optional", "broken"]


@dataclass(frozen=True)
class Diagnosis:
    """The finding of one check, and the remedy."""

    what: str
    state: State
    detail: str
    do: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    option(parser, "--all", "also explain how to add optional parts")
    option(parser, "--json", "print JSON")


def run(options: argparse.Namespace) -> int:
    found = [*_installation(), *_extras(), *_plugins(), *_tools(), _terminal(), _state(), *_configuration()]
    if options.json:
        print_json([asdict(finding) for finding in found])
    else:
        print_table(("STATE", "WHAT", "DETAIL"), [(it.state, it.what, it.detail) for it in found])
        if broken := [it for it in found if it.state == "broken"]:
            _print_steps("What must be done:", broken)
        else:
            print_line("\nNothing must be done.")
        optional = [it for it in found if it.state == "optional"]
        if optional and options.all:
            _print_steps("What you may do:", optional)
        elif optional:
            print_line(f"{len(optional)} parts are optional: accord doctor --all says how to add them.")
    return FAILED if any(it.state == "broken" for it in found) else ENDED_WELL


def _print_steps(title: str, steps: list[Diagnosis]) -> None:
    print_line(f"\n{title}")
    for it in steps:
        print_line(f"  {it.what}: {it.do}")


def _installation() -> Iterator[Diagnosis]:
    yield Diagnosis("accord", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    yield Diagnosis("python", "ok", f"{platform.python_version()} at {sys.executable}, {platform.platform(terse=True)}")


def _extras() -> Iterator[Diagnosis]:
    known = _declared()
    for extra, modules in MODULES.items():
        if extra not in known:
            continue
        absent = [module for module in modules if find_spec(module) is None]
        if not absent:
            yield Diagnosis(f"extra {extra}", "ok", ", ".join(_with_version(module) for module in modules))
        else:
            detail = f"for {FOR[extra]}"
            yield Diagnosis(f"extra {extra}", "optional", detail, install_command(extra))


def _declared() -> set[str]:
    """The extras that the installed packages of Accord have for this platform."""
    needed: list[str] = []
    for name in ("accord", "accord-tools", "accord-adapters"):
        try:
            needed += requires(name) or []
        except PackageNotFoundError:
            if name == "accord":  # Accord runs from its sources
                return set(MODULES)
    there = {
        extra for extra in MODULES if any(f'extra == "{extra}"' in it or f"extra == '{extra}'" in it for it in needed)
    }
    return there - ({"uvloop"} if sys.platform == "win32" else set())


def _plugins() -> Iterator[Diagnosis]:
    """Check the plug-ins of installed distributions, by kind and name. Each is loaded, as its use would."""
    for group in (AGENTS, COMMANDS, EXTENSIONS, STORES, TRANSPORTS):
        for name, plugin in plugins(group).items():
            if plugin.dist is None:  # Accord's own
                continue
            what, origin = f"plug-in {name}", f"{plugin.dist.name} {plugin.dist.version}"
            try:
                load_plugin(plugin)
            except PluginError as error:
                yield Diagnosis(what, "broken", str(error), f"update or remove {plugin.dist.name}")
            else:
                yield Diagnosis(what, "ok", f"{origin}, in {group}")


def _with_version(module: str) -> str:
    package = {"opentelemetry": "opentelemetry-api", "re2": "google-re2"}.get(module, module)
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def _terminal() -> Diagnosis:
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    at = [name for name, stream in streams.items() if stream is not None and stream.isatty()]
    encoding = (sys.stdout.encoding if sys.stdout is not None else None) or "none"
    kind = os.environ.get("TERM", "not set")
    detail = f"standard {', '.join(at)}" if at else "none of the standard streams"
    colours = "refused (NO_COLOR)" if os.environ.get("NO_COLOR") else "allowed"
    text = f"{detail}; TERM {kind}, encoding {encoding}, colours {colours}"
    if "utf" not in encoding.lower():
        return Diagnosis("terminal", "optional", text, "set PYTHONUTF8=1, so that every character can be printed")
    return Diagnosis("terminal", "ok", text)


def _state() -> Diagnosis:
    folder = state_folder()
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return Diagnosis("state", "ok", f"{folder}")
    return Diagnosis(
        "state", "optional", f"{folder} cannot be written", "set XDG_STATE_HOME to a folder that you may write"
    )


def _configuration() -> Iterator[Diagnosis]:
    from accord_tools.configuration.agents_file import VARIABLE, project_file, read_file, user_file
    from accord_tools.configuration.resolve_agent import KnownAgents
    from accord_tools.configuration.trust import is_trusted

    own, project = user_file(), project_file()
    files: list[AgentsFile] = []
    for owner, path in (("project", project), ("user", own)):
        if path is None:
            continue
        what = f"{owner}'s file"
        try:
            file = read_file(path, "project" if owner == "project" else "user")
        except ConfigurationError as error:
            yield Diagnosis(what, "broken", str(error), f"correct {path}")
            continue
        if file is None:
            if os.environ.get(VARIABLE):
                yield Diagnosis(what, "broken", f"{VARIABLE} names {path}, which does not exist", f"unset {VARIABLE}")
            else:
                yield Diagnosis(what, "optional", f"{path} does not exist", "accord agents add NAME -- COMMAND")
            continue
        files.append(file)
        if is_trusted(file):
            yield Diagnosis(what, "ok", str(path))
        else:
            yield Diagnosis(what, "optional", f"{path} is not trusted", "read it, then run: accord agents trust")
    yield from _agents(KnownAgents(files))


def _agents(known: KnownAgents) -> Iterator[Diagnosis]:
    from accord_tools.cli.agents.named_agents import found

    agents = [agent for agent in known if not agent.is_hidden]
    for agent in agents:
        what, settings = f"agent {agent.name}", agent.settings
        if settings.url is not None:
            if find_spec("httptools") is None or find_spec("websockets") is None:
                yield Diagnosis(what, "broken", "a URL needs the extra http", install_command("http"))
            else:
                yield Diagnosis(what, "ok", settings.where)
        elif (program := found(agent)) is not None:
            yield Diagnosis(what, "ok", program)
        else:
            yield Diagnosis(
                what,
                "broken",
                f"program not found: {settings.words[0]}",
                f"install it, put its folder on PATH, or run: accord agents remove {agent.name}",
            )
    for file in known.files:
        if file.default is not None and file.default not in known.names:
            yield Diagnosis(
                "default agent",
                "broken",
                f"{file.path} names {file.default!r}, which is not an agent",
                "accord agents default NAME",
            )


# The programs with which agents of the registry are installed


PATIENCE = 20.0
"""Seconds for a program to print its version."""


class Tool(NamedTuple):
    """A program, its purpose, the oldest suitable version, and how to get it."""

    program: str
    purpose: str
    oldest: tuple[int, ...]
    get: str


NODE = "install Node.js 22 or newer, which has npm, from nodejs.org or your system's packages"
TOOLS = (
    Tool("node", "agents that are packages of npm run with it, and many ask for 22", (22,), NODE),
    Tool("npm", "installs agents that are packages of npm", (9,), NODE),
    Tool("uv", "installs agents that are packages of PyPI; without it, pip does, except for --require-hash", (0, 5),
         "pip install uv"),
)  # fmt: skip


def _tools() -> Iterator[Diagnosis]:
    """Return one finding for each program."""
    for tool in TOOLS:
        place = program_file(tool.program)
        if place is None:
            yield Diagnosis(tool.program, "optional", f"not on PATH: {tool.purpose}", tool.get)
            continue
        said = _version_text(place)
        found = re.search(r"\d+(?:\.\d+)+", said)
        if found is None:
            yield Diagnosis(tool.program, "optional", f"{place} does not say its version: {said[:200]}", tool.get)
            continue
        detail = f"{found[0]} at {place}"
        if tuple(int(part) for part in found[0].split(".")) < tool.oldest:
            wanted = ".".join(map(str, tool.oldest))
            yield Diagnosis(tool.program, "optional", f"{detail}, older than {wanted}: {tool.purpose}", tool.get)
        else:
            yield Diagnosis(tool.program, "ok", detail)


def _version_text(place: str) -> str:
    """Return the output of a program that is asked for its version, or why it cannot be asked."""
    try:
        done = subprocess.run(
            [place, "--version"], capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip() or done.stderr.strip()
