"""`accord chat`: the terminal client. This file owns its options; the room `tui` is the client.

`--plain` is a plain line-by-line mode, for terminals that cannot show a screen, and for screen readers. A prompt is a
line; a line that ends with a backslash continues. The answer, the work and the questions are shown as `accord run`
shows them.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from accord.mistakes import ForgottenAwaits
from accord_tools.cli.agent_options import (
    ChosenAgent,
    RemoteOptions,
    agent_arguments,
    chosen_agent,
    protocol_versions,
    remote_options,
)
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error
from accord_tools.cli.exit_codes import ENDED_WELL, INTERRUPTED, WrongUsage, one_line
from accord_tools.cli.login import log_in
from accord_tools.cli.permission_options import permission_arguments, policy_of, run_client
from accord_tools.cli.session_options import (
    absolute,
    budget_arguments,
    budget_of,
    open_session,
    prepare_session,
    read_mcp_file,
    session_arguments,
    stopped_by,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from accord import RemoteSession
    from accord_tools.cli.display import Display
    from accord_tools.cli.run_turn import Interrupts
    from accord_tools.pictures.terminal_graphics import Graphics
    from accord_tools.tui.chat_settings import ChatOptions
    from accord_tools.tui.chat_storage import Worktree
    from accord_tools.tui.connection import AgentChoice


LEAVING = ("/quit", "/exit")


def converse(options: argparse.Namespace) -> int:
    """Talk with the agent until the end of input."""
    from accord import run as run_loop

    options.non_interactive = None
    options.json = False
    return run_loop(_converse(options))


async def _converse(options: argparse.Namespace) -> int:
    from accord import connect
    from accord_tools.cli.display import dialogue_view
    from accord_tools.cli.run_turn import interrupts

    with interrupts() as control:
        async with dialogue_view(absolute(options.cwd)) as view:
            with run_client(options, view) as lent:
                agent = chosen_agent(options)
                spoken = protocol_versions(options)
                where = agent.target(ForgottenAwaits(print_error))
                async with connect(where, lent.client, unstable=True, versions=spoken) as remote:
                    await log_in(options, remote)
                    servers = read_mcp_file(options.mcp, options.cwd) if options.mcp else ()
                    session = await open_session(options, remote, servers)
                    return await _dialogue(options, session, view, control)


async def _dialogue(options: argparse.Namespace, session: RemoteSession, view: Display, control: Interrupts) -> int:
    """Prompts and answers, one after the other."""
    reader = PromptReader(view.mark_prompt)
    text: str | None = options.prompt
    while True:
        if text is None:
            text = await reader.next()
        if text is None or text.strip() in LEAVING:
            return INTERRUPTED if control.count else ENDED_WELL
        if text.strip():
            await _turn(options, session, text, view, control)
        text = None


async def _turn(
    options: argparse.Namespace, session: RemoteSession, text: str, view: Display, control: Interrupts
) -> None:
    from accord import AccordError

    budget = budget_of(options)
    reply = session.prompt(text, mentions=True, subagents=True, budget=budget)
    control.politely = reply.request_cancel
    try:
        await view.prompted(session)
        await view.follow(reply)
        outcome = await reply
        await view.ended(session, outcome)
        if (option := stopped_by(outcome, budget)) is not None:
            print_error(f"accord chat: the agent was stopped by {option}")
    except AccordError as error:
        await view.failed(error)
        print_error(f"accord chat: {one_line(error)}")
    finally:
        control.politely = None


class PromptReader:
    """Reads prompts from standard input, a line each; a line that ends with a backslash continues.

    It reads only on request, so that a question at the terminal gets its own answer. Its thread does not hold the
    process, which can end while the user has typed nothing.
    """

    def __init__(self, mark: Callable[[], None]) -> None:
        self._mark = mark
        self._unread = b""
        self._reading: asyncio.Future[str | None] | None = None

    @property
    def is_reading(self) -> bool:
        """Whether the user may be typing a prompt."""
        return self._reading is not None

    async def next(self) -> str | None:
        """Return the next prompt; None at the end of input. A prompt for which a cancelled call waited comes next."""
        import asyncio

        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            threading.Thread(target=self._read, args=(loop, self._reading), name="accord prompt", daemon=True).start()
            self._mark()
        text = await asyncio.shield(self._reading)
        self._reading = None
        return text

    def _read(self, loop: asyncio.AbstractEventLoop, reading: asyncio.Future[str | None]) -> None:
        text = self._prompt()
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(reading.set_result, text)

    def _prompt(self) -> str | None:
        text = ""
        while (line := self._line()) is not None:
            text += line
            if not line.endswith("\\"):
                return text
            text = f"{text[:-1]}\n"
        return text or None

    def _line(self) -> str | None:
        while b"\n" not in self._unread:
            try:
                chunk = os.read(0, 65536)
            except OSError:
                chunk = b""
            if not chunk:
                break
            self._unread += chunk
        if not self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")


EPILOG = """\
examples:
  accord chat                              the default agent, or a list to choose from
  accord chat gemini                       an agent that `accord agents` lists
  accord chat -- gemini --acp              an agent by its command
  accord chat gemini --continue            the latest session of this folder
  accord chat gemini --session 3f2a        a session by the start of its id
  accord chat --prompt "Fix the tests"     send this prompt first; you can type meanwhile
  accord chat --plain                      line by line, without a full screen

keys:
  enter sends, ctrl+j begins a new line, esc stops the agent, f1 shows all keys.
  / lists commands, @ names files.

The agent may read files in the session's folder. You are asked about changes and commands.
shift+tab changes that, as do --allow (edit: no questions about changes; auto: none at all;
none: about reading, too) and the rules of --policy.
The guide is docs/chat.md."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = "accord chat [options] [AGENT | -- COMMAND...]"
    option(parser, "--prompt TEXT", "send this first")
    option(parser, "--plain", "plain line-by-line mode, for terminals without full-screen support")
    option(parser, "--theme NAME", "the colours; /theme lists them")
    group = session_arguments(parser)
    option(group, "--worktree", "work in a new git worktree, which stays when the chat ends")
    option(group, "--trust", "trust this folder from now on: git may run in it")
    permission_arguments(parser.add_argument_group("permission"))
    budget_arguments(parser.add_argument_group("limits"))
    agent_arguments(parser, is_argument=True)


def run(options: argparse.Namespace) -> int:
    prepare_session(options)
    folder = Path(options.cwd).absolute()
    if options.worktree and (options.continues or options.session is not None):
        raise WrongUsage("--worktree begins a new session; leave --continue and --session out")
    if options.trust:
        _trust(folder)
    worktrees = [_worktree(options, folder)] if options.worktree else []
    try:
        return _run(options, worktrees)
    finally:
        for worktree in worktrees:  # after the screen is gone
            print_error(f"The work is in a git worktree:\n{worktree.described()}")


def _run(options: argparse.Namespace, worktrees: list[Worktree]) -> int:
    if options.plain or not _is_able():
        return converse(options)
    try:
        from accord_tools.tui.chat_app import ChatApp
    except ImportError as error:
        from accord.installation import extra_of, missing_extra

        if extra_of(error) is None:
            raise
        raise missing_extra("cli", "accord chat") from error
    app = ChatApp(_choice(options), _options(options, worktrees))
    code = app.run()
    if any(it.draft.strip() for it in app.conversations):
        print_error("Your draft was not sent; the next chat with this agent in this folder has it again.")
    return 0 if code is None else code


def _trust(folder: Path) -> None:
    """Let git run in a folder, without a question."""
    from accord.project.git import find_repository
    from accord_tools.configuration.trust import trust_folder

    repository = find_repository(folder)
    if repository is None:
        raise WrongUsage(f"--trust: not a git repository: {folder}; there is nothing to trust")
    trust_folder(repository)


def _worktree(options: argparse.Namespace, folder: Path) -> Worktree:
    """Make the worktree in which the session works, and make it the session's folder."""
    from accord.project.git import FolderNotTrusted
    from accord_tools.cli.agent_setup import ask_for_folder
    from accord_tools.configuration.trust import is_folder_trusted
    from accord_tools.tui.chat_storage import new_worktree

    try:
        try:
            worktree = new_worktree(folder, is_folder_trusted)
        except FolderNotTrusted as error:
            ask_for_folder(error)
            worktree = new_worktree(folder, is_folder_trusted)
    except (ValueError, FolderNotTrusted) as error:
        raise WrongUsage(f"--worktree: {error}") from error
    options.cwd = str(worktree.folder)
    return worktree


def _is_able() -> bool:
    """Whether the terminal can show a screen."""
    is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def _is_ascii() -> bool:
    """Whether the terminal does not use UTF-8. With LANG=C or LC_ALL=C, Python itself writes UTF-8 all the same."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    return locale in ("C", "POSIX") or "utf" not in (sys.stdout.encoding or "").lower()


def _choice(options: argparse.Namespace) -> AgentChoice | None:
    """Return the agent that the command line names; None if the user should choose."""
    agent = chosen_agent(options)
    if agent.is_demo:  # none was named
        return None
    words = agent.settings.words
    name = options.word or options.named
    return _made(name or (Path(words[0]).name if words else agent.settings.where), agent, options.cwd)


def _made(name: str, agent: ChosenAgent, folder: str) -> AgentChoice:
    from accord.redaction import mask_urls
    from accord_tools.configuration.permission_rules import default_level
    from accord_tools.tui.connection import AgentChoice

    settings = agent.settings
    return AgentChoice(
        name,
        agent.target,
        where=settings.description or mask_urls(settings.where),
        program=agent.target().program,
        mode=settings.mode,
        config=settings.config,
        level=default_level(folder, settings).level,
        is_demo=agent.is_demo,
    )


def _of_registry(folder: str, name: str) -> AgentChoice:
    """An agent of the registry that is installed."""
    from accord_tools.cli.agent_options import ChosenAgent
    from accord_tools.configuration.resolve_agent import resolve

    return _made(name, ChosenAgent(resolve(f"registry:{name}"), RemoteOptions()), folder)


def _known(options: argparse.Namespace) -> list[AgentChoice]:
    """Return the agents that can be started here, the preferred one first: those with names, those on PATH,
    and ours.
    """
    from accord.installation import own_command
    from accord_tools.cli.agent_options import ChosenAgent, known_agents
    from accord_tools.cli.home import agents_here
    from accord_tools.configuration.agent_settings import AgentSettings
    from accord_tools.configuration.resolve_agent import started_by_us
    from accord_tools.configuration.trust import is_trusted

    usable = [agent for agent in known_agents() if not agent.is_hidden and is_trusted(agent.file)]
    named = {agent.name: agent for agent in usable}
    choices: list[AgentChoice] = []
    for here in agents_here():
        if (agent := named.get(here.name)) is not None:
            settings = started_by_us(agent.settings)
            with suppress(WrongUsage):  # a token file that is missing, or options for another kind of agent
                choices.append(_made(agent.name, ChosenAgent(settings, remote_options(options, settings)), options.cwd))
        elif here.words.startswith("-- "):  # an installed one is listed with those of the registry
            words = shlex.split(here.words)[1:]
            words = own_command(*words) if words[0] == "accord" else words
            chosen = ChosenAgent(
                AgentSettings(command=words, description=here.about), RemoteOptions(), is_demo=here.name == "demo"
            )
            choices.append(_made(here.name, chosen, options.cwd))
    return choices


def _options(options: argparse.Namespace, worktrees: list[Worktree]) -> ChatOptions:
    from accord_tools.cli.home import keys_here
    from accord_tools.tui.chat_settings import ChatOptions, read_settings
    from accord_tools.tui.connection import ConnectionOptions

    settings = read_settings()
    budget = settings.budget(max_cost=options.max_cost, max_turns=options.max_turns, max_time=options.max_time)
    graphics, typed = _graphics(settings.images)
    connection = ConnectionOptions(
        remembers=settings.remember,
        budget=budget,
        allow=options.allow,
        policy=policy_of(options),
        versions=tuple(protocol_versions(options)),
    )
    return ChatOptions(
        Path(options.cwd).absolute(),
        worktrees=worktrees,
        agents=_known(options),
        about=keys_here(),
        find_agent=partial(_of_registry, options.cwd),
        prompt=options.prompt,
        session_id=options.session,
        continues=options.continues,
        mode=options.mode,
        model=options.model,
        config=dict(setting.split("=", 1) for setting in options.settings),
        servers=read_mcp_file(options.mcp, options.cwd) if options.mcp else (),
        connection=connection,
        theme=options.theme or settings.theme,
        keys=settings.keys,
        bell=settings.bell,
        sidebar=settings.sidebar,
        images=settings.images,
        is_ascii=_is_ascii(),
        is_coloured=not os.environ.get("NO_COLOR"),
        graphics=graphics,
        typed=typed,
    )


def _graphics(images: str) -> tuple[Graphics, str]:
    """Return how the terminal shows images, and the input that the user typed during the query."""
    from accord_tools.pictures.terminal_graphics import NO_GRAPHICS, Graphics, Protocol, ask_terminal, may_be_asked

    for known in get_args(Protocol):
        if known == images:
            return Graphics(known), ""
    if images == "blocks" or os.environ.get("NO_COLOR") or not may_be_asked(os.environ):
        return NO_GRAPHICS, ""
    with suppress(OSError):
        return ask_terminal(sys.stdin.fileno(), sys.stdout.fileno())
    return NO_GRAPHICS, ""
