"""Assembles the built-in agent: its commands, its modes and config options, and the start of every session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from accord import Agent, Session, Store, Turn, __version__
from accord_tools.demo import demo_messages, demo_talk, demo_work
from accord_tools.demo.demo_talk import PACE, Memory

NAME = "accord-demo"
DEMO_MODES = (
    ("ask", "Ask", "Asks before it changes or runs anything"),
    ("explain", "Explain", "Says what it would do, and does nothing"),
    ("auto", "Auto", "Does what it is told without asking"),
)
LENGTHS = (("full", "Full"), ("short", "Short", "The first sentence of every answer"))


class DemoCommand(NamedTuple):
    """A slash command: its description, its hint and its function."""

    name: str
    shows: str
    function: Callable[..., Any]
    hint: str | None = None


async def offer_settings(session: Session) -> None:
    await session.modes.offer(DEMO_MODES)
    await session.config.offer("length", "Length of answers", LENGTHS, description="How much is said")
    await session.config.offer("aloud", "Think aloud", description="A thought before every answer")


async def mode(turn: Turn, name: str) -> None:
    if name in [mode[0] for mode in DEMO_MODES]:
        await turn.session.modes.set(name)
        await turn.say(f"The mode is `{name}` now.")
        return
    lines = [f"- `{identifier}`: {meaning}" for identifier, _, meaning in DEMO_MODES]
    await turn.say("\n".join([f"The mode is `{turn.session.modes.current}`. You can choose:", *lines]))


async def config(turn: Turn, line: str) -> None:
    option, _, value = line.partition(" ")
    if option in turn.session.config and value:
        await turn.session.config.set(option, value == "on" if option == "aloud" else value.strip())
    chosen = [f"- `{option}`: {_words(value)}" for option, value in turn.session.config.values().items()]
    await turn.say("\n".join(["These are your choices; `/config OPTION VALUE` changes one:", *chosen]))


def _words(value: str | bool) -> str:
    return value if isinstance(value, str) else "on" if value else "off"


FEATURES = (
    DemoCommand("plan", "Show a plan, and follow it", demo_work.plan),
    DemoCommand("plans", "Show two plans, one of them as a document", demo_work.plans),
    DemoCommand("subagent", "Let a subagent look around; you can cancel it alone", demo_work.subagent),
    DemoCommand("compact", "Make a summary of what we said", demo_work.compact),
    DemoCommand("think", "Think aloud", demo_messages.think),
    DemoCommand("read", "Read a file", demo_work.read, "a file"),
    DemoCommand(
        "edit", "Change a file in this folder, with a diff, when you allow it", demo_work.edit, "a file, or nothing"
    ),
    DemoCommand("run", "Run a command in a terminal of the client, when you allow it", demo_work.run, "a command"),
    DemoCommand("image", "Draw a small picture", demo_messages.picture),
    DemoCommand("sound", "Play three notes", demo_messages.sound),
    DemoCommand("resource", "Send a link, and a text that travels along", demo_messages.resource),
    DemoCommand("form", "Ask you to fill in a form", demo_messages.form),
    DemoCommand("url", "Ask you to visit a page", demo_messages.page),
    DemoCommand("tools", "List what the MCP servers of this session offer", demo_work.tools),
    DemoCommand("call", "Call a tool of an MCP server", demo_work.call, "server/tool, and arguments"),
    DemoCommand("mode", "Show or change the mode", mode, "ask, explain or auto"),
    DemoCommand("config", "Show or change the config options", config, "an option and its value"),
    DemoCommand("title", "Give this session a title", demo_messages.title, "a title"),
    DemoCommand("usage", "Report how full the context is, and the cost", demo_messages.usage),
    DemoCommand("notice", "Send a notice", demo_messages.notify),
    DemoCommand("suggest", "Suggest what you may send next", demo_messages.suggest),
    DemoCommand("stream", "Give a long answer, word by word", demo_messages.stream, "how many words"),
    DemoCommand("slow", "Work slowly, so that you can cancel", demo_work.slow, "how many seconds"),
    DemoCommand("watch", "Work in the background, and report when it is done", demo_work.watch, "how many steps"),
    DemoCommand(
        "stop", "End the turn with another stop reason", demo_messages.stop, "max_tokens, max_turn_requests, refusal"
    ),
    DemoCommand("error", "Fail", demo_messages.fail),
    DemoCommand("client", "Say what your client lends and shows", demo_talk.describe_client),
)


def demo_agent(*, login: bool = False, pace: float = PACE, store: Store | str | Path | None = None) -> Agent:
    """Return the built-in agent.

    `login`: it requires authentication first. `pace`: seconds between two words. `store`: the store of its sessions.
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
    agent.on_prompt(demo_talk.talk)
    agent.on_rewind(demo_talk.rewind)
    if login:
        agent.login("demo", "Log in to the demonstration", description="Anybody may; nothing is sent anywhere")(
            demo_messages.log_in
        )
        agent.on_logout(lambda: None)

    @agent.on_session
    async def begin(session: Session) -> None:
        session.state.pace = pace
        await offer_settings(session)
        session.mcp.start()

    return agent


async def show_help(turn: Turn) -> None:
    lines = [
        f"- `/{command.name}{f' [{command.hint}]' if command.hint else ''}` {command.description}"
        for command in turn.session.commands
    ]
    await turn.say("\n".join(["This is what I can show you:", "", *lines, "", "Or just talk to me."]))
