"""The options that choose an agent and how to reach it.

AGENT is a name, a command or URL after `--`, or nothing for the default agent. Further options set the environment of
its process (`--clean-env`, `--env-file`), the access to its URL (`--token-file`, `--header`, `--ca`, `--proxy`), and
the version of the protocol (`--protocol`, ACCORD_PROTOCOL).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from accord import ConfigurationError
from accord.installation import own_command
from accord_tools.cli.command_table import Parser, actions_of, option
from accord_tools.cli.console import has_user
from accord_tools.cli.exit_codes import WrongUsage

if TYPE_CHECKING:
    import ssl

    from accord import Target
    from accord.http import Observer
    from accord_tools.configuration.agent_settings import AgentSettings
    from accord_tools.configuration.resolve_agent import KnownAgents

# Bearer tokens: never from arguments, which other users can see


TOKEN_VARIABLE = "ACCORD_TOKEN"
OBSERVER = "observer"
"""The word that ends the line of a token that may only watch."""
TOKEN_HELP = f"read the bearer token from this file (default: the variable {TOKEN_VARIABLE}, if it is set)"

ROUNDS = 20_000
"""Rounds of PBKDF2 for an owner's name. Logs show the name, and it must not help to guess a short token."""


def bearer_token(file: str | None) -> str | None:
    """Return the bearer token to send: from this file, or from the variable, which is then removed from the
    environment.

    An agent that is a local command, and every terminal it asks for, would inherit the variable otherwise.
    """
    given = os.environ.get(TOKEN_VARIABLE, "").strip() or None
    forget_token()
    if file is None:
        return given
    known = _read_tokens(file)
    if len(known) > 1:
        raise WrongUsage(f"--token-file {file} must hold exactly one token to send, got {len(known)}")
    return next(iter(known))


def token_owners(file: str | None) -> dict[str, str | Observer]:
    """Return the accepted tokens and their owners or observers; empty without a file and with the variable unset.

    A token without an owner in its line is an owner of its own. `observer` after an owner makes it one that only
    watches.
    """
    if file is not None:
        return {
            secret: _owner_named(owner) if owner else _owner_of(secret) for secret, owner in _read_tokens(file).items()
        }
    given = os.environ.get(TOKEN_VARIABLE)
    if given is None:
        return {}
    if not given.strip():
        raise WrongUsage(f"{TOKEN_VARIABLE} is set but empty: set it to a token, or unset it to allow everyone")
    return {given.strip(): ""}


def _owner_named(owner: str) -> str | Observer:
    from accord.http import Observer

    name, _, role = owner.rpartition(" ")
    return Observer(name.strip()) if role == OBSERVER and name.strip() else owner


def forget_token() -> None:
    """Remove the token from this process's environment.

    An agent that we start can read the environment with which we were started (/proc/PID/environ on Linux). Deleting a
    variable does not change that text, so the value is also overwritten in place.
    """
    if TOKEN_VARIABLE not in os.environ:
        return
    if sys.platform != "win32":
        import ctypes

        find = ctypes.CDLL(None).getenv
        find.restype = ctypes.c_void_p
        if (place := find(TOKEN_VARIABLE.encode())) is not None:
            ctypes.memset(place, 0, len(os.environb[TOKEN_VARIABLE.encode()]))
    del os.environ[TOKEN_VARIABLE]


def _read_tokens(file: str) -> dict[str, str]:
    """Read a token file: each line is TOKEN, TOKEN OWNER, TOKEN OWNER observer, or a comment that begins with #."""
    from pathlib import Path  # `accord --version` needs no paths

    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read the tokens in {file}: {getattr(error, 'strerror', None) or error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        secret, *owner = line.split(maxsplit=1)[:2] or ("",)
        if not secret or secret.startswith("#"):
            continue
        if secret in found:
            raise WrongUsage(
                f"--token-file {file}: the token in line {number} is a duplicate; give each owner a token of its own"
            )
        found[secret] = owner[0].strip() if owner else ""
    if not found:
        raise WrongUsage(f"--token-file {file} contains no token: write at least one, each on its own line")
    return found


def _owner_of(secret: str) -> str:
    """A stable name for the owner of a token, from which the token cannot be found."""
    import hashlib

    derived = hashlib.pbkdf2_hmac("sha256", secret.encode(), b"accord owner", ROUNDS, dklen=8)
    return f"token-{derived.hex()}"


# An agent behind a URL


class RemoteOptions(NamedTuple):
    """The token, the headers, the certificates and the proxy for an agent behind a URL."""

    token: str | None = None
    headers: dict[str, str] = {}  # noqa: RUF012
    tls: ssl.SSLContext | None = None
    proxy: str | bool = True


def remote_arguments(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    option(group, "--token-file FILE", TOKEN_HELP)
    option(group, "--header 'NAME: VALUE'...", "send this header to an agent with a URL; may be repeated")
    option(group, "--ca FILE", "also trust the certificates in this file (PEM)")
    option(
        group,
        "--proxy URL",
        "the proxy for agents with a URL (http, https, socks5 or socks5h), instead of the one in HTTPS_PROXY "
        "and similar variables; 'none' for none",
    )


def remote_options(options: argparse.Namespace, settings: AgentSettings) -> RemoteOptions:
    """Return these options combined with the agent's settings. The token's variable is removed from the environment."""
    if settings.url is None:
        forget_token()  # the agent that is started would inherit it
        for name in ("token_file", "header", "ca", "proxy"):
            if getattr(options, name):
                raise WrongUsage(f"--{name.replace('_', '-')} is for an agent with a URL, and this one is a command")
        return RemoteOptions()
    from accord_tools.configuration.agent_settings import trusting

    return RemoteOptions(
        bearer_token(options.token_file or settings.token_file),
        dict(_header(given) for given in options.header),
        trusting(options.ca or settings.ca),
        options.proxy or settings.proxy or True,
    )


def _header(given: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    if not (name.strip() and colon):
        raise WrongUsage("--header must be 'NAME: VALUE', with a colon after the name")
    return name.strip(), value.strip()


# The environment of an agent's process


def environment_arguments(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    """Add the options."""
    from accord_tools.configuration import passed_on

    names = ", ".join(passed_on())
    option(group, "--clean-env", f"let the agent see only these variables of yours: {names}")
    option(
        group,
        "--env-file FILE",
        "set the agent's variables in this file, NAME=VALUE on each line; the value keyring:NAME is a secret of "
        "the system's keyring",
    )


def with_environment(options: argparse.Namespace, settings: AgentSettings) -> AgentSettings:
    """Return the settings of an agent with these options applied."""
    if not (options.clean_env or options.env_file):
        return settings
    if settings.url is not None:
        raise WrongUsage("--clean-env and --env-file are for an agent that is a command, and this one has a URL")
    import msgspec

    return msgspec.structs.replace(
        settings,
        clean_env=options.clean_env or settings.clean_env,
        env_file=options.env_file or settings.env_file,
    )


# The version of the protocol


PROTOCOL_VARIABLE = "ACCORD_PROTOCOL"
PROTOCOLS: dict[str, tuple[int, ...]] = {"auto": (2, 1), "1": (1,), "2": (2,)}
"""The versions that each word means; `auto` asks for 2, and takes 1."""
DEFAULT_PROTOCOL = "1"
"""The default without the option and the variable: version 2 is a preview."""


def protocol_argument(group: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    option(
        group,
        "--protocol",
        "the version of the protocol; auto asks for 2 and accepts 1 "
        f"(default: {PROTOCOL_VARIABLE}, or {DEFAULT_PROTOCOL})",
        choices=PROTOCOLS,
    )


def protocol_versions(options: argparse.Namespace) -> tuple[int, ...]:
    """Return the versions to ask for; raises WrongUsage for an unknown word in the variable."""
    given: str | None = options.protocol
    word = given or os.environ.get(PROTOCOL_VARIABLE) or DEFAULT_PROTOCOL
    if word not in PROTOCOLS:
        raise WrongUsage(f"{PROTOCOL_VARIABLE} must be {', '.join(PROTOCOLS)} or empty, got {word!r}")
    return PROTOCOLS[word]


# The agent


def known_agents() -> KnownAgents:
    """The agents that are known in this folder."""
    from accord_tools.configuration.resolve_agent import KnownAgents

    return KnownAgents.of()


ABOUT_AGENT = """\
A command or URL after --, or an agent with -a. Without either it is the default agent
(accord agents default), else the built-in demo agent. Options for its environment, its
URL and the protocol's version: accord help agent-options"""
ABOUT_RECORDED = "A command after --, or an agent with -a. More options: accord help agent-options"
AGENT_HELP = (
    "the agent's name in `accord agents` or in the registry, its URL, or a Python file (FILE.py or FILE.py:NAME)"
)
YES_HELP = "install an agent of the registry that is not installed, without asking"


class ChosenAgent:
    """The agent that the command line names, and how it is reached."""

    def __init__(self, settings: AgentSettings, remote: RemoteOptions, *, is_demo: bool = False) -> None:
        self.settings = settings
        self.is_demo = is_demo
        """Whether the built-in agent is used because the user named no agent."""
        self.remote = remote
        """The access to its URL."""

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
        token = {"Authorization": f"Bearer {self.remote.token}"} if self.remote.token else {}
        return self.remote.headers | token

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """Set variables of the agent's process, after those of its settings."""
        import msgspec

        self.settings = msgspec.structs.replace(self.settings, env={**self.settings.env, **variables})

    def target(self, on_stderr: Callable[[str], object] | None = None) -> Target:
        """Return the target for `accord.connect`; each call returns a new one, which does not know the logins of
        another.

        `on_stderr` gets the lines that a command writes to its standard error.
        """
        from accord_tools.configuration.resolve_agent import target_of

        return target_of(self.settings, **self.remote._asdict(), on_stderr=on_stderr)


def split_agent(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and the agent after it."""
    if "--" not in arguments:
        return list(arguments), []
    place = list(arguments).index("--")
    return list(arguments[:place]), list(arguments[place + 1 :])


def agent_arguments(
    parser: argparse.ArgumentParser, *, is_argument: bool = False, is_remote: bool = True, about: str = ABOUT_AGENT
) -> None:
    """Add the options that choose an agent, for `chosen`, `settings_of` and `local_command`.

    With `is_argument`, the command accepts the agent's name also as its argument. Without `is_remote`, it accepts no
    agent with a URL. Help shows only how to name the agent, unless `about` is empty.
    """
    group = parser.add_argument_group("the agent", about)
    option(group, "-a --agent AGENT", AGENT_HELP, dest="named")
    if is_argument:
        group.add_argument("word", nargs="?", metavar="AGENT", help="the same, without -a")
    before = len(actions_of(parser))
    if "--yes" not in known_options(parser):  # for `accord sessions delete` it means more
        option(group, "--yes", YES_HELP, dest="installs")
    environment_arguments(group)
    if is_remote:
        remote_arguments(group)
        protocol_argument(group)
    if about and isinstance(parser, Parser):
        parser.shared = actions_of(parser)[before:]
    parser.set_defaults(takes_agent=True, chosen=None, installs=False)


def agent_options_parser() -> argparse.ArgumentParser:
    """Return the parser whose help explains the options that choose an agent, once for all commands."""
    parser = Parser(
        prog="accord COMMAND",
        usage="accord COMMAND [options] [-a AGENT | -- COMMAND... | -- URL]",
        description="The options that choose an agent, and say how it is reached. Every command that talks to one has "
        "them; commands without a prompt take AGENT without -a, too.",
        add_help=False,
    )
    agent_arguments(parser, about="")
    return parser


def known_options(parser: argparse.ArgumentParser) -> list[str]:
    """The options that a parser has so far."""
    return [option for action in actions_of(parser) for option in action.option_strings]


def chosen_agent(options: argparse.Namespace) -> ChosenAgent:
    """Return the agent that these options name; the user may be asked whether they trust a project's file."""
    if options.chosen is None:
        settings = settings_of(options)
        is_demo = settings is None
        settings = settings or with_environment(options, demo_settings())
        options.chosen = ChosenAgent(settings, remote_options(options, settings), is_demo=is_demo)
    found: ChosenAgent = options.chosen
    return found


def settings_of(options: argparse.Namespace) -> AgentSettings | None:
    """Return the settings of the agent that these options name; None for the built-in agent by default.

    The user may be asked whether they trust a project's file, and whether to install an agent of the registry.
    """
    from accord_tools.cli.agent_setup import ask_for_trust, ask_to_install
    from accord_tools.configuration.resolve_agent import python_file
    from accord_tools.configuration.trust import NotTrusted
    from accord_tools.registry import NotInstalled

    settings = _resolved_after(
        options, {NotTrusted: ask_for_trust, NotInstalled: lambda error: ask_to_install(options, error)}
    )
    if settings is not None and (file := python_file(settings)) is not None and not file.is_file():
        raise WrongUsage(f"file not found: {file}")
    return None if settings is None else with_environment(options, settings)


class LocalCommand(NamedTuple):
    """How the agent is started that the options name, for commands that take no URL."""

    words: list[str]
    cwd: str | None
    env: dict[str, str | None]
    """The changes to our environment; None removes a variable."""

    @classmethod
    def of(cls, settings: AgentSettings, instead: str) -> LocalCommand:
        """Return the command that the options name; raises WrongUsage for an agent with a URL, with the advice
        `instead`.
        """
        from accord_tools.configuration.agent_settings import changes

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
    """Return the settings, after each question that must be asked first was answered with yes."""
    while True:
        try:
            return _resolved(options)
        except tuple(questions) as error:
            questions.pop(type(error))(error)


def _resolved(options: argparse.Namespace) -> AgentSettings | None:
    from accord_tools.configuration.resolve_agent import KnownAgents, resolve, resolve_command

    word: str | None = getattr(options, "word", None)
    given = [name for name in (options.named, word) if name is not None]
    if len(given) + bool(options.agent) > 1:
        raise WrongUsage("name one agent: with -a, as the argument, or as a command after --")
    if options.agent:
        return resolve_command(options.agent)
    name = given[0] if given else KnownAgents.of().default
    return None if name is None else resolve(name, may_ask=options.installs or has_user())


def demo_settings() -> AgentSettings:
    """Return the built-in agent."""
    from accord_tools.configuration.agent_settings import AgentSettings

    return AgentSettings(command=own_command("accord", "demo"))
