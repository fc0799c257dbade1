"""Assembles the built-in agent: its commands, and the start and end of every turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from accord import Agent, Session, Store, Turn, __version__
from accord.agent.session_config import SlashCommand
from accord_tools.demo import asking, background, conversation, delegating, servers, settings, telling, working
from accord_tools.demo.memory import PACE, Memory

NAME = "accord-demo"


class Feature(NamedTuple):
    """A slash command: its description, its hint and its function."""

    name: str
    shows: str
    function: Callable[..., Any]
    hint: str | None = None


FEATURES = (
    Feature("plan", "Show a plan, and follow it", working.plan),
    Feature("plans", "Show two plans, one of them as a document", delegating.plans),
    Feature("subagent", "Let a subagent look around; you can cancel it alone", delegating.subagent),
    Feature("compact", "Make a summary of what we said", delegating.compact),
    Feature("think", "Think aloud", telling.think),
    Feature("read", "Read a file", working.read, "a file"),
    Feature("edit", "Change a file in this folder, with a diff, when you allow it", working.edit, "a file, or nothing"),
    Feature("run", "Run a command in a terminal of the client, when you allow it", working.run, "a command"),
    Feature("image", "Draw a small picture", telling.picture),
    Feature("sound", "Play three notes", telling.sound),
    Feature("resource", "Send a link, and a text that travels along", telling.resource),
    Feature("form", "Ask you to fill in a form", asking.form),
    Feature("url", "Ask you to visit a page", asking.page),
    Feature("tools", "List what the MCP servers of this session offer", servers.tools),
    Feature("call", "Call a tool of an MCP server", servers.call, "server/tool, and arguments"),
    Feature("mode", "Show or change the mode", settings.mode, "ask, explain or auto"),
    Feature("config", "Show or change the config options", settings.config, "an option and its value"),
    Feature("title", "Give this session a title", telling.title, "a title"),
    Feature("usage", "Report how full the context is, and the cost", telling.usage),
    Feature("notice", "Send a notice", telling.notify),
    Feature("stream", "Give a long answer, word by word", telling.stream, "how many words"),
    Feature("slow", "Work slowly, so that you can cancel", working.slow, "how many seconds"),
    Feature("watch", "Work in the background, and report when it is done", background.watch, "how many steps"),
    Feature("stop", "End the turn with another stop reason", telling.stop, "max_tokens, max_turn_requests, refusal"),
    Feature("error", "Fail", telling.fail),
    Feature("client", "Say what your client lends and shows", conversation.describe_client),
)


def demo_agent(*, login: bool = False, pace: float = PACE, store: Store | str | Path | None = None) -> Agent:
    """The built-in agent.

    `login`: it wants you to authenticate first. `pace`: seconds between two words. `store`: where its sessions live.
    """
    agent = Agent(
        NAME,
        version=__version__,
        title="Accord demo",
        accepts=("image", "audio", "embedded"),
        store=store,
        state=Memory,
    )
    agent.command("help", "List everything that I can show")(show_help)
    for feature in FEATURES:
        agent.command(feature.name, feature.shows, hint=feature.hint)(feature.function)
    agent.on_prompt(conversation.talk)
    if login:
        agent.login("demo", "Log in to the demonstration", description="Anybody may; nothing is sent anywhere")(
            asking.log_in
        )
        agent.on_logout(lambda: None)

    @agent.on_session
    async def begin(session: Session) -> None:
        session.state.pace = pace
        await settings.offer(session)
        session.mcp.start()

    return agent


async def show_help(turn: Turn) -> None:
    lines = [f"- `{_usage(command)}` {command.description}" for command in turn.session.commands]
    await turn.say("\n".join(["This is what I can show you:", "", *lines, "", "Or just talk to me."]))


def _usage(command: SlashCommand) -> str:
    return f"/{command.name}" + (f" [{command.hint}]" if command.hint else "")
