"""`accord info`: an agent's name and capabilities, as a table or as JSON."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from accord import AccordError, RemoteAgent, RemoteSession, connect, run as run_loop
from accord.redaction import mask_urls
from accord.schema import codec
from accord_tools.cli.agent_options import ChosenAgent, agent_arguments, chosen_agent, protocol_versions
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_json, print_table
from accord_tools.cli.exit_codes import one_line
from accord_tools.cli.login import log_in
from accord_tools.cli.session_options import trial_session

EPILOG = """\
examples:
  accord info                       the default agent, or the built-in one
  accord info gemini                an agent that `accord agents` lists
  accord info -- gemini --acp       an agent by its command
  accord info --json -- https://agents.example/acp | jq .capabilities

Modes, config options and commands belong to a session. So one is opened in the current folder, and deleted or closed
again; --no-session skips that."""

COMMANDS_WITHIN = 1.0
"""Seconds that an agent has to send a session's commands, which come in no answer."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "accord info [options] [AGENT | -- COMMAND...]"
    parser.epilog = EPILOG
    option(parser, "--json", "print JSON")
    option(parser, "--no-session", "open no session")
    option(parser, "--login METHOD", "log in by this method first")
    agent_arguments(parser, is_argument=True)


def run(options: argparse.Namespace) -> None:
    about = run_loop(_learned(options, chosen_agent(options)))
    if options.json:
        print_json(about)
    else:
        print_table(("WHAT", "VALUE"), _named_once(_rows(about)))


async def _learned(options: argparse.Namespace, chosen: ChosenAgent) -> dict[str, Any]:
    where = chosen.target()
    begun = time.monotonic()
    async with connect(where, versions=protocol_versions(options)) as remote:
        started = time.monotonic() - begun
        await log_in(options, remote)
        about = _agent(remote, started, mask_urls(where.name))
        if not options.no_session:
            about["session"] = await _session(remote)
    return about


def _agent(remote: RemoteAgent, started: float, where: str) -> dict[str, Any]:
    info = remote.info
    return {
        "name": remote.name,
        "title": None if info is None else info.title,
        "version": None if info is None else info.version,
        "where": where,
        "protocolVersion": remote.version,
        "startSeconds": round(started, 3),
        "capabilities": codec.plain(remote.capabilities.declared),
        "authMethods": codec.plain(remote.auth_methods),
    }


async def _session(remote: RemoteAgent) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        async with trial_session(remote) as session:
            opened = time.monotonic() - begun
            await _commands(session)
            return {"openSeconds": round(opened, 3), **_offered(session)}
    except AccordError as error:
        return {"error": one_line(error)}


async def _commands(session: RemoteSession) -> None:
    """Wait for the session's commands, but not long: an agent may have none."""
    commands_arrived = asyncio.Event()
    stop = session.on_change(lambda _update: commands_arrived.set() if session.state.commands else None)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(COMMANDS_WITHIN):
                while not session.state.commands:
                    await commands_arrived.wait()
    finally:
        stop()


def _offered(session: RemoteSession) -> dict[str, Any]:
    state = session.state
    return {
        "mode": state.mode,
        "modes": codec.plain(state.modes),
        "model": state.model,
        "models": codec.plain(state.models),
        "configOptions": codec.plain(state.config),
        "commands": codec.plain(state.commands),
    }


# As a table


def _named_once(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The rows; one that is of the same kind as the row above does not repeat its name."""
    last = ""
    for kind, value in rows:
        yield "" if kind == last else kind, value
        last = kind


def _rows(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = about["name"] + (f" ({about['title']})" if about["title"] not in (None, about["name"]) else "")
    yield "agent", f"{name} {about['version'] or ''}".rstrip()
    yield "reached by", about["where"]
    yield "protocol", f"version {about['protocolVersion']}"
    yield "time to start", f"{about['startSeconds']:.2f} s"
    for key in sorted(_said(about["capabilities"])):
        yield "offers", key
    for method in about["authMethods"]:
        yield "login", _named(method)
    yield from _session_rows(about.get("session"))


def _session_rows(session: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if session is None:
        return
    if "error" in session:
        yield "session", f"not opened: {session['error']}"
        return
    yield "time to open a session", f"{session['openSeconds']:.2f} s"
    for mode in session["modes"] or ():
        yield "mode", _named(mode) + (" (current)" if mode["id"] == session["mode"] else "")
    for model in session["models"] or ():
        named = _named({**model, "id": model["modelId"]})
        yield "model", named + (" (current)" if model["modelId"] == session["model"] else "")
    for it in session["configOptions"] or ():
        yield "config option", f"{_named(it)} = {_text(it.get('currentValue'))}"
    for command in session["commands"] or ():
        yield "command", f"/{command['name']}: {command.get('description', '')}"


def _named(it: Mapping[str, Any]) -> str:
    its_id = it["id"] if "id" in it else it.get("methodId", "")  # as a login of an unknown type has it
    name, description = it.get("name") or "", it.get("description")
    return (
        f"{its_id}" + (f" ({name})" if name not in ("", its_id) else "") + (f": {description}" if description else "")
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _said(value: object, path: str = "") -> Iterator[str]:
    """The capabilities that are declared, each by its path: `promptCapabilities.image`."""
    if not isinstance(value, dict):
        return
    for key, it in cast("dict[str, Any]", value).items():
        here = f"{path}.{key}" if path else key
        if key == "_meta" or it is None or it is False:
            continue
        inner = list(_said(it, here))
        yield from inner
        if it is True or it == {} or not (inner or isinstance(it, dict)):
            yield here
