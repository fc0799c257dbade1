"""The scenarios: each is one start of the agent, and a list of things that it is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from accord_check.agent import full, mcp_servers
from accord_check.agent.healthy import healthy
from accord_check.agent.lab import Lab
from accord_check.agent.link import Gone, Link, Over
from accord_check.agent.remote import raw_http
from accord_check.agent.second import second_version
from accord_check.agent.settings import Profile
from accord_check.conversation import Frame, object_of

BAD_IDS = (None, 1, 5)
"""The ids under which input that is no message may be answered; our requests have larger ones."""

PROMPTING: tuple[Profile, ...] = ("default", "full", "fixture")
FULL: tuple[Profile, ...] = ("full", "fixture")


class Scenario(NamedTuple):
    """One start of the agent."""

    name: str
    shows: str
    run: Callable[[Lab], Awaitable[None]]
    profiles: tuple[Profile, ...] = ("smoke", "default", "full", "fixture")
    versions: tuple[int, ...] = (1, 2)


async def bare(lab: Lab) -> None:
    """A client that can do nothing: the agent must not use what was not declared."""
    async with lab.link() as link:
        await lab.initialize(link, "capabilities.agent-takes-none", can_do=False)
        await lab.login(link)
        session = await lab.new_session(link)
        if lab.settings.prompting:
            lab.answered("prompt.content.agent-takes-text", await lab.prompt(link, session, lab.settings.prompts.plain))
            await link.quiet(lab.settings.quiet)


async def latest(lab: Lab) -> None:
    """A client of the future: the agent answers with a version of its own."""
    async with lab.link() as link:
        info = {"name": "accord-check", "version": "1"}
        exchange = await link.ask(
            "initialize",
            # A router of two versions reads it as version 2, so it has the members of both.
            {"protocolVersion": 65535, "clientCapabilities": {}, "clientInfo": info, "capabilities": {}, "info": info},
            lab.settings.start_within,
        )
        lab.answered("lint.initialize.succeeds", exchange, "version 65535 was refused, not answered with another")


async def garbage(lab: Lab) -> None:
    """Input that is no message: the agent answers it or ignores it, and goes on."""
    async with lab.link() as link:
        await lab.initialize(link)
        for name, data in (
            ("jsonrpc.error.parse", b'{"jsonrpc":"2.0","id":1,'),
            ("jsonrpc.error.invalid-request", b"[]"),
            ("jsonrpc.error.invalid-request", b'{"jsonrpc":"2.0","id":5,"method":7}'),
        ):
            await _bad_frame(lab, link, name, data)
        link.send({"id": 9_999, "result": {}})
        exchange = await link.ask("_accord.check/alive", {})
        lab.judge("lint.survives-bad-input", None, exchange.answered)


async def restarted(lab: Lab) -> None:
    """A second process: a session of the first is loaded, and goes on."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        name = "lint.load.after-restart"
        if lab.lacks(link, "load", name):
            return
        for session in lab.sessions[:1]:
            exchange = await lab.load(link, session)
            if lab.answered(name, exchange, "a session of an earlier process cannot be loaded"):
                await link.quiet(lab.settings.quiet)
                lab.answered("session.load.goes-on", await lab.prompt(link, session, lab.settings.prompts.plain))
                await link.quiet(lab.settings.quiet)


async def ended_in_turn(lab: Lab) -> None:
    """The end of the input in the middle of a turn."""
    async with lab.link() as link:
        await lab.initialize(link)
        await lab.login(link)
        session = await lab.new_session(link)
        lab.begin(link, session, lab.settings.prompts.slow)
        await link.quiet(lab.settings.quiet, most=1.0)
        lab.process_ended(link, await link.close(lab.settings.grace), "in a turn")


async def terminal_login(lab: Lab) -> None:
    """A client that declares `auth.terminal`: the agent answers, and its terminal logins are well formed."""
    async with lab.link() as link:
        await lab.initialize(link, terminal_login=True)


SCENARIOS = (
    Scenario("healthy", "sessions, lists, turns, cancelling, the end", healthy),
    Scenario("bare", "a client without capabilities", bare),
    Scenario("version 2", "what version 2 refuses", second_version, versions=(2,)),
    Scenario("two sessions", "two sessions at work at once", full.two_sessions, FULL),
    Scenario("opened again", "sessions that are resumed and forked", full.opened_again, FULL),
    Scenario("MCP servers", "a session with MCP servers", mcp_servers.lent_servers, FULL),
    Scenario("remote MCP server", "a session with an MCP server over HTTP", mcp_servers.remote_server, FULL),
    Scenario("killed in a turn", "a session after its agent was killed", full.killed_in_a_turn, FULL),
    Scenario("open question", "a turn that is cancelled while it asks", full.cancelled_question, FULL),
    Scenario("at once", "a turn that is cancelled at once", full.cancelled_at_once, FULL),
    Scenario("second client", "two clients at once", full.second_client, FULL),
    Scenario("many requests", "a thousand requests at once", full.many_requests, FULL),
    Scenario("raw HTTP", "requests over raw HTTP", raw_http, FULL),
    Scenario("latest", "a version that does not exist yet", latest, versions=(0,)),
    Scenario("garbage", "input that is no message", garbage),
    Scenario("restarted", "a session after a restart", restarted, PROMPTING),
    Scenario("ended in a turn", "the end of the input in a turn", ended_in_turn, PROMPTING),
)
"""The scenarios, in the order in which they run."""

TERMINAL_LOGIN = Scenario("terminal login", "a client that can open a terminal for a login", terminal_login)
"""The scenario of `Settings.terminal_login`."""


async def _bad_frame(lab: Lab, link: Link, name: str, data: bytes) -> None:
    wanted = -32700 if name == "jsonrpc.error.parse" else -32600
    sent = link.send_raw(data)

    def answers() -> list[Frame]:
        return [frame for frame in link.replies if frame.number > sent.number and frame.members.get("id") in BAD_IDS]

    with suppress(TimeoutError, Gone):
        await link.until(lambda: bool(answers()), lab.settings.quiet)
    try:  # a process may need a while to end
        await link.ask("_accord.check/alive", {})
    except Gone:
        lab.judge("lint.survives-bad-input", f"the agent ended after {data.decode()}", sent)
        raise Over from None
    if not (answered := answers()):
        lab.judge(name, f"{data.decode()} had no answer", sent)
        return
    said = object_of(answered[0].members.get("error")).get("code")
    lab.judge(name, None if said == wanted else f"{data.decode()} was answered with {said}", sent, answered[0])
