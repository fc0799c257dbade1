"""The scenarios of the profile full: an agent's optional features, MCP servers, and load."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from accord_check.agent import mcp_probe
from accord_check.agent.mcp_probe import HEADER, McpOverHttp
from accord_check.agent.raw_connection import Link
from accord_check.agent.scenario_context import ScenarioContext

IN_FLIGHT = 1_000
"""Requests that are sent before the first answer is awaited."""


async def two_sessions(context: ScenarioContext) -> None:
    """Two sessions that work at once: events in one do not affect the other."""
    async with context.logged_in() as link:
        first, second = await context.new_session(link), await context.new_session(link)
        if first == second:  # reported already; that one session then has two turns is not another fault
            return
        link.forget(first)
        slow = context.begin(link, first, context.settings.prompts.slow)
        await link.while_open(slow, lambda: bool(link.update_kinds(first)))
        plain = context.begin(link, second, context.settings.prompts.plain)
        cancel = link.cancel(first)
        await link.turn_end(plain)
        await link.turn_end(slow)
        name = "lint.sessions.independent"
        if context.answered(name, plain, "a prompt failed while the turn of another session was cancelled"):
            wrong = "a turn ended as cancelled when another session was cancelled"
            context.judge(name, plain.reason != "cancelled" or wrong, cancel, plain.answered)


async def opened_again(context: ScenarioContext) -> None:
    """A session that is resumed without its past continues, and a fork does not affect it."""
    async with context.logged_in() as link:
        session = await context.new_session(link)
        await context.prompt(link, session, context.settings.prompts.plain)
        place: dict[str, Any] = {"sessionId": session, "cwd": str(context.folder), "mcpServers": []}
        if not context.lacks(link, "resume", "session.resume.ready-when-answered"):
            if context.offers(link, "close"):
                await link.ask("session/close", {"sessionId": session})
            exchange = await context.resume(link, session)
            name = "session.resume.ready-when-answered"
            if context.answered(name, exchange):
                await context.plain_turn(link, session, name)
        if not context.lacks(link, "fork", "lint.fork.goes-on", "session.fork.leaves-source"):
            await _forked(context, link, session, place)


async def _forked(context: ScenarioContext, link: Link, session: str, place: dict[str, Any]) -> None:
    exchange = await link.ask("session/fork", place, context.settings.turn_within)
    fork = exchange.fields.get("sessionId")
    if context.answered("lint.fork.goes-on", exchange) and isinstance(fork, str):
        await context.plain_turn(link, fork, "lint.fork.goes-on")
        await context.plain_turn(link, session, "session.fork.leaves-source")


async def many_requests(context: ScenarioContext) -> None:
    """A thousand requests at once: each is answered."""
    async with context.link() as link:
        await context.initialize(link)
        asked = [link.call("_accord.check/nothing", {"number": number}) for number in range(IN_FLIGHT)]
        for exchange in asked:
            await link.answer(exchange)
        context.judge("lint.request.answered", None, asked[-1].answered)


async def cancelled_question(context: ScenarioContext) -> None:
    """A turn that is cancelled while its question of permission is open; the passive checks judge its end."""
    if not context.settings.prompts.edit:
        return
    async with context.logged_in() as link:
        session = await context.new_session(link)
        link.services.permit = "hold"
        turn = context.begin(link, session, context.settings.prompts.edit)
        await link.while_open(turn, lambda: bool(link.services.held))
        if turn.is_over:  # it did not ask
            return
        link.cancel(session)
        link.services.permit = "cancel"
        link.settle()
        await link.turn_end(turn)
        await link.quiet()


async def cancelled_at_once(context: ScenarioContext) -> None:
    """A turn that is cancelled before its first output."""
    async with context.logged_in() as link:
        session = await context.new_session(link)
        turn = context.begin(link, session, context.settings.prompts.slow)
        link.cancel(session)
        await link.turn_end(turn)
        await context.plain_turn(link, session, "lint.prompt.after-cancel")


async def second_client(context: ScenarioContext) -> None:
    """Two clients, each with its own process: both are served."""
    async with context.link() as one, context.link() as other:
        for link in (one, other):
            await context.initialize(link)
            await context.login(link)
        sessions = [await context.new_session(one), await context.new_session(other)]
        for link, session in zip((one, other), sessions, strict=True):
            await context.plain_turn(link, session, "lint.second-client")


async def killed_in_a_turn(context: ScenarioContext) -> None:
    """An agent that is killed in a turn, and started again: its session is opened again if it declares that."""
    name = "lint.load.after-kill"
    async with context.logged_in() as link:
        if not link.is_process:
            context.skip((name, "lint.killed.leaves-no-process"), "the agent is not our process")
            return
        session = await context.new_session(link)
        await context.prompt(link, session, context.settings.prompts.plain)
        link.forget(session)
        turn = context.begin(link, session, context.settings.prompts.slow)
        await link.while_open(turn, lambda: bool(link.update_kinds(session)))
        await link.kill(context.settings.answer_within)
        can_load = context.offers(link, "load")
        if not can_load and context.lacks(link, "resume", name):
            return
    async with context.logged_in() as link:
        exchange = await (context.load(link, session) if can_load else context.resume(link, session))
        if context.answered(name, exchange, "the session of a killed process cannot be opened again"):
            await link.quiet()
            await context.plain_turn(link, session, "session.load.goes-on")


_NAME, _VALUE = "ACCORD_CHECK_MARK", "as told"
_STDIO = ("mcp.stdio-supported", "mcp.untyped-is-stdio", "mcp.launched-as-told", "mcp.all-connected")
_HTTP = ("mcp.http-supported", "mcp.headers-sent")


async def stdio_servers(context: ScenarioContext) -> None:
    """A session with two MCP servers that are programs."""
    notes = [context.folder / f"mcp-started-{number}.json" for number in (1, 2)]
    for note in notes:
        note.unlink(missing_ok=True)
    async with context.logged_in() as link:
        if context.lacks(link, "stdio", *_STDIO):
            return
        session = await _opened(context, link, [_program(note) for note in notes])
        if not all(note.exists() for note in notes):  # some agents connect at the first prompt
            await context.prompt(link, session, context.settings.prompts.mcp or context.settings.prompts.plain)
        started = [note for note in notes if note.exists()]
        if not started:
            context.skip(_STDIO[2:], "the agent did not start the MCP servers of its session")
            return
        said = json.loads(started[0].read_text(encoding="utf-8"))
        odd = said["arguments"] != ["an argument"] or said["mark"] != _VALUE
        verdict = not odd or f"the MCP server got the arguments {said['arguments']} and {_NAME}={said['mark']!r}"
        context.judge("mcp.launched-as-told", verdict, link.last)
        context.judge(
            "mcp.all-connected", len(started) == len(notes) or "one of two MCP servers was started", link.last
        )


def _program(note: Path) -> dict[str, Any]:
    return {
        "name": f"accord-check-{note.stem[-1]}",
        "command": sys.executable,
        "args": [mcp_probe.__file__, str(note), "an argument"],
        "env": [{"name": _NAME, "value": _VALUE}],
    }


async def _opened(context: ScenarioContext, link: Link, servers: list[dict[str, Any]]) -> str:
    """Open the session. In version 1 a server that is a program has no type; an agent may want one by mistake."""
    typed = [{"type": "stdio"} | server for server in servers]
    if context.version == 2:
        return await context.new_session(link, "mcp.stdio-supported", mcpServers=typed)
    exchange = await link.ask("session/new", {"cwd": str(context.folder), "mcpServers": servers})
    made = exchange.fields.get("sessionId")
    if exchange.succeeded and isinstance(made, str):
        context.judge("mcp.untyped-is-stdio", None, exchange.answered)
        context.judge("mcp.stdio-supported", None, exchange.answered)
        return made
    session = await context.new_session(link, "mcp.stdio-supported", mcpServers=typed)
    refused = "session/new was refused for an MCP server without a type, and not for one of the type stdio"
    context.judge("mcp.untyped-is-stdio", refused, exchange)
    return session


async def http_server(context: ScenarioContext) -> None:
    """A session with an MCP server over HTTP, for an agent that declares support for it."""
    async with context.logged_in() as link:
        if context.lacks(link, "http", *_HTTP):
            return
        with McpOverHttp() as server:
            lent = {
                "type": "http",
                "name": "accord-check",
                "url": server.url,
                "headers": [{"name": HEADER, "value": _VALUE}],
            }
            session = await context.new_session(link, "mcp.http-supported", mcpServers=[lent])
            if not server.marks:  # some agents connect at the first prompt
                await context.prompt(link, session, context.settings.prompts.mcp or context.settings.prompts.plain)
            if not server.marks:
                context.skip("mcp.headers-sent", "the agent did not connect to the MCP server of its session")
                return
            without = sum(mark != _VALUE for mark in server.marks)
            verdict = not without or f"{without} of {len(server.marks)} requests came without the header {HEADER}"
            context.judge("mcp.headers-sent", verdict, link.last)
