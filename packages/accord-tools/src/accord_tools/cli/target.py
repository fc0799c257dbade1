"""AGENT on the command line: a name, a command or URL after `--`, or nothing for the default agent."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from accord import ConfigurationError
from accord.extras import own_command
from accord_tools.cli import environment_options, protocol, remote_options
from accord_tools.cli.endings import WrongUsage
from accord_tools.cli.parser import actions_of

if TYPE_CHECKING:
    import ssl

    from accord import Target
    from accord_tools.cli.remote_options import RemoteOptions
    from accord_tools.configuration.settings import AgentSettings

ABOUT = """\
The agent is a command or URL after --, or one of these options. Without any of them it is the default agent that
`accord agents default` sets, otherwise the built-in demo agent."""
ABOUT_RECORDED = "The agent is a command after --, or one of these options."
HELP = "the agent's name in `accord agents` or in the registry, its URL, or a Python file (FILE.py or FILE.py:NAME)"
YES = "install an agent of the registry that is not installed, without asking"


class ChosenAgent:
    """The agent that the command line names, and how it is reached."""

    def __init__(self, settings: AgentSettings, remote: RemoteOptions, *, is_demo: bool = False) -> None:
        self.settings = settings
        self.is_demo = is_demo
        """Whether the built-in agent is used because the user named no agent."""
        self._remote = remote

    @property
    def words(self) -> list[str]:
        """The agent's command; empty if it has a URL, or a command that cannot be split into words."""
        try:
            return self.settings.words
        except ValueError:
            return []

    @property
    def url(self) -> str | None:
        """The agent's URL; None for an agent that is a command."""
        return self.settings.url

    @property
    def headers(self) -> dict[str, str]:
        """The headers of requests to the agent's URL, with its token."""
        token = {"Authorization": f"Bearer {self._remote.token}"} if self._remote.token else {}
        return self._remote.headers | token

    @property
    def tls(self) -> ssl.SSLContext | None:
        """What requests to the agent's URL trust; None for the usual authorities."""
        return self._remote.tls

    @property
    def proxy(self) -> str | bool:
        """The proxy on the way to the agent's address: its URL, or whether the environment chooses."""
        return self._remote.proxy

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """Set variables of the agent's process, after those of its settings."""
        import msgspec

        self.settings = msgspec.structs.replace(self.settings, env={**self.settings.env, **variables})

    def target(self, on_stderr: Callable[[str], object] | None = None) -> Target:
        """What `accord.connect` takes; each call gives a new one, which knows nothing of the logins of another.

        `on_stderr` gets the lines that a command writes to its standard error.
        """
        from accord_tools.configuration.resolving import target_of

        return target_of(self.settings, **self._remote._asdict(), on_stderr=on_stderr)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and the agent after it."""
    if "--" not in arguments:
        return list(arguments), []
    place = list(arguments).index("--")
    return list(arguments[:place]), list(arguments[place + 1 :])


def arguments(
    parser: argparse.ArgumentParser, *, is_argument: bool = False, is_remote: bool = True, about: str = ABOUT
) -> None:
    """Add the options that choose an agent, all that `chosen`, `settings_of` and `local_command` read.

    With `is_argument`, the command takes the agent's name also as its argument. Without `is_remote`, it takes no agent
    with a URL.
    """
    group = parser.add_argument_group("the agent", about)
    group.add_argument("-a", "--agent", dest="named", metavar="AGENT", help=HELP)
    if is_argument:
        group.add_argument("word", nargs="?", metavar="AGENT", help="the same, without -a")
    if "--yes" not in known_options(parser):  # for `accord sessions delete` it means more
        group.add_argument("--yes", dest="installs", action="store_true", help=YES)
    environment_options.arguments(group)
    if is_remote:
        remote_options.arguments(group)
        protocol.arguments(group)
    parser.set_defaults(takes_agent=True, chosen=None, installs=False)


def known_options(parser: argparse.ArgumentParser) -> list[str]:
    """The options that a parser has so far."""
    return [option for action in actions_of(parser) for option in action.option_strings]


def chosen(options: argparse.Namespace) -> ChosenAgent:
    """The agent that these options name; the user may be asked whether they trust a project's file."""
    if options.chosen is None:
        settings = settings_of(options)
        is_demo = settings is None
        settings = settings or environment_options.apply(options, demo())
        options.chosen = ChosenAgent(settings, remote_options.read(options, settings), is_demo=is_demo)
    found: ChosenAgent = options.chosen
    return found


def settings_of(options: argparse.Namespace) -> AgentSettings | None:
    """The settings of the agent that these options name; None for the built-in agent by default.

    The user may be asked whether they trust a project's file, and whether to install an agent of the registry.
    """
    from accord_tools.cli.installing import ask_to_install
    from accord_tools.cli.trusting import ask_for_trust
    from accord_tools.configuration.resolving import python_file
    from accord_tools.configuration.trust import NotTrusted
    from accord_tools.registry import NotInstalled

    try:
        settings = _resolved_after(
            options,
            {
                NotTrusted: ask_for_trust,
                NotInstalled: lambda error: ask_to_install(options, error),
            },
        )
    except ConfigurationError as error:
        raise WrongUsage(str(error)) from error
    if settings is not None and (file := python_file(settings)) is not None and not file.is_file():
        raise WrongUsage(f"file not found: {file}")
    return None if settings is None else environment_options.apply(options, settings)


class LocalCommand(NamedTuple):
    """How the agent is started that the options name, for commands that take no URL."""

    words: list[str]
    cwd: str | None
    env: dict[str, str | None]
    """What differs from our environment."""

    @classmethod
    def of(cls, settings: AgentSettings, instead: str) -> LocalCommand:
        """Raises WrongUsage for an agent with a URL; `instead` says what to do with that."""
        from accord_tools.configuration.environment import changes

        if settings.url is not None:
            raise WrongUsage(f"{settings.url} is not a command; {instead}")
        try:
            return cls(settings.words, settings.cwd, changes(settings))
        except ValueError as error:
            raise WrongUsage(f"cannot split the command {settings.command!r} into words: {error}") from error


def local_command(options: argparse.Namespace) -> LocalCommand:
    """The command to record that these options name."""
    settings = settings_of(options)
    if settings is None:
        raise WrongUsage(f"name the agent: {options.used.prog} -- COMMAND..., or -a AGENT")
    return LocalCommand.of(settings, f"record a bridge to it: {options.used.prog} -- accord bridge URL")


def _resolved_after(
    options: argparse.Namespace, questions: dict[type[ConfigurationError], Callable[[Any], None]]
) -> AgentSettings | None:
    """The settings, after each question that has to be asked first was answered with yes."""
    while True:
        try:
            return _resolved(options)
        except tuple(questions) as error:
            questions.pop(type(error))(error)


def _resolved(options: argparse.Namespace) -> AgentSettings | None:
    from accord_tools.cli.lending import has_user
    from accord_tools.configuration.known_agents import KnownAgents
    from accord_tools.configuration.resolving import resolve, resolve_command

    word: str | None = getattr(options, "word", None)
    given = [name for name in (options.named, word) if name is not None]
    if len(given) + bool(options.agent) > 1:
        raise WrongUsage("name one agent: with -a, as the argument, or as a command after --")
    if options.agent:
        return resolve_command(options.agent)
    name = given[0] if given else KnownAgents.of().default
    return None if name is None else resolve(name, may_ask=options.installs or has_user())


def demo() -> AgentSettings:
    """The built-in agent."""
    from accord_tools.configuration.settings import AgentSettings

    return AgentSettings(command=own_command("accord", "demo"))
