"""`--allow`, `--policy` and `--non-interactive`: an agent's permissions, and who answers its requests for permission.

| `--allow` | without a question | else |
|---|---|---|
| `none` | nothing; nothing is lent | refused |
| `ask` | reading in the session's folders | the user is asked |
| `edit` | changing files there as well | the user is asked |
| `auto` | everything | |

Without it the settings decide (`default_level`), else it is `ask`. `--policy` has rules that answer first, about each
use of a file and each command.

If no user can be asked, `Refusals` answers. `--non-interactive deny` (the default) continues after a refusal.
`--non-interactive fail` ends the turn at the first one, and the command with its own exit code: a job in CI then does
not look as if it had done its work.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from accord import ConfigurationError
from accord.printable import label
from accord_tools.cli.command_table import option
from accord_tools.cli.console import has_user
from accord_tools.cli.exit_codes import WrongUsage

if TYPE_CHECKING:
    from accord import (
        Client,
        Elicitation,
        PermissionPolicy,
        PermissionQuestion,
        RememberedAnswers,
        RemoteAgent,
        Terminals,
        TerminalUser,
        v1,
    )
    from accord.services import Choice, Level, UsePermissions
    from accord_tools.cli.display import Display
    from accord_tools.cli.events import Events
    from accord_tools.presentation.work_lines import Writes

    View: TypeAlias = Display | Events


REPORTED = 5
"""The most refusals that are reported one by one."""
TITLE = 100


def permission_arguments(group: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    option(
        group,
        "--allow",
        "what the agent may do without a question (default: as your settings say, else ask)",
        choices=ALLOW,
    )
    option(group, "--policy FILE", "a TOML file with rules that answer before --allow does")


class Refusals:
    """Answers requests for permission without a user, and counts those that it refuses."""

    def __init__(self, note: Callable[[str], None], *, fails: bool) -> None:
        self.count = 0
        self.end_turn: Callable[[], None] | None = None
        """Asks the running turn to stop."""
        self.fails = fails
        self._note = note

    def answer(self, question: PermissionQuestion) -> Choice:
        """The function for `Permissions(ask)`."""
        from accord.services import level_of

        self.refuse(question, f"--allow {level_of(question)}, or a rule of --policy FILE, would allow it")
        return False

    def close(self) -> None:
        """Report how many refusals were not reported one by one."""
        if self.count > REPORTED:
            self._note(f"accord run: refused {self.count - REPORTED:,} more requests")

    def refuse(self, question: PermissionQuestion, why: str) -> None:
        """Count a refusal and report it with the reason; end the turn if that is to be."""
        self.count += 1
        if self.count <= REPORTED:
            self._note(f"accord run: refused {describe_request(question)}; {why}")
        if self.fails and self.end_turn is not None:
            self.end_turn()


def describe_request(question: PermissionQuestion) -> str:
    """Describe an agent's request, safe for a terminal."""
    call = question.tool_call
    return f"({call.kind}) {label(question.title, TITLE) or 'a request without a title'}"


ALLOW: list[Level] = ["none", "ask", "edit", "auto"]
NON_INTERACTIVE = ["deny", "fail"]


class RunClient(NamedTuple):
    """The client for the agent, and its results."""

    client: Client
    writes: Writes
    """The files that the agent wrote through the client."""
    refusals: Refusals | None
    """The requests that were refused without asking a user; None if a user is asked."""


@contextmanager
def run_client(options: argparse.Namespace, view: View) -> Generator[RunClient]:
    """Return the client that the options describe. Questions wait for `view`, which shows events."""
    from accord import Terminals
    from accord.services import UsePermissions
    from accord_tools.presentation.work_lines import Writes

    level: Level = options.allow or (options.default_level.level if "default_level" in options else "ask")
    policy = policy_of(options)
    writes, terminals = Writes(options.cwd), Terminals(on_open=view.failed_commands.watch)
    refusals = Refusals(view.note, fails=options.non_interactive == "fail")
    if _asks_user(options, level, policy):
        with _user(view) as (user, kept):
            from accord import Elicitation

            consent = UsePermissions(
                user.permit,
                level=level,
                policy=policy,
                remembered=kept,
                while_deciding=view.question_order.stopped,
                on_refused=refusals.refuse,
            )
            fills = Elicitation(user.fill, user.visit)
            yield RunClient(_client(view, consent, writes, terminals, fills), writes, None)
        return
    consent = UsePermissions(refusals.answer, level=level, policy=policy, on_refused=refusals.refuse)
    consent.asks_nobody = True
    lends = level != "none" or policy is not None
    client = _client(view, consent, writes if lends else None, terminals if lends else None)
    try:
        yield RunClient(client, writes, refusals)
    finally:
        refusals.close()


def _asks_user(options: argparse.Namespace, level: Level, policy: PermissionPolicy | None) -> bool:
    """Whether a user is present who sees questions, and something may have to be asked."""
    if options.non_interactive is not None or level == "none" or (level == "auto" and policy is None):
        return False
    return has_user() and (not options.json or options.allow is not None)


def policy_of(options: argparse.Namespace) -> PermissionPolicy | None:
    """The rules of `--policy FILE`; raises WrongUsage for a file that cannot be read."""
    if options.policy is None:
        return None
    from accord import PermissionPolicy

    try:
        return PermissionPolicy.load(options.policy)
    except ConfigurationError as error:
        raise WrongUsage(f"--policy {error}") from error


@contextmanager
def _user(view: View) -> Generator[tuple[TerminalUser, RememberedAnswers]]:
    """Return the user at the terminal, and the file of the answers that they want to keep."""
    from accord import TerminalUser

    answers = _opt_in_answers(view.note)
    try:
        user = TerminalUser(while_asking=view.asking, keep=answers.keep)
    except OSError as error:
        raise WrongUsage(
            f"questions need a terminal ({error.strerror or error}); use --non-interactive deny, or --allow auto"
        ) from error
    with user:
        yield user, answers


def _opt_in_answers(note: Callable[[str], None]) -> Any:
    """Return the file of remembered answers, which stores only those for which its method `keep` was called."""
    import asyncio

    from accord import RememberedAnswers

    loop = asyncio.get_running_loop()
    to_keep: list[PermissionQuestion] = []

    class OptInAnswers(RememberedAnswers):
        keep = staticmethod(to_keep.append)

        def remember(self, question: PermissionQuestion, *, allowed: bool, everywhere: bool = False) -> None:
            if not any(question is kept for kept in to_keep):
                return
            try:
                super().remember(question, allowed=allowed, everywhere=everywhere)
            except (OSError, ValueError) as error:
                # Answers are written in a thread.
                loop.call_soon_threadsafe(note, f"accord run: the answer holds for this run only: {error}")

    return OptInAnswers()


def _shown(view: View, declared: v1.ClientCapabilities) -> v1.ClientCapabilities:
    """Return the client's capabilities, without subagents if the view does not show them: they are tool calls then."""
    from msgspec.structs import replace  # here, because help loads this module

    return declared if view.shows_subagents else replace(declared, subagents=None)


def _client(
    view: View,
    consent: UsePermissions,
    writes: Writes | None,
    terminals: Terminals | None,
    elicitation: Elicitation | None = None,
) -> Client:
    """Return a client that lends the given files and terminals, each use with consent."""
    from accord import Client, Files
    from accord.services import Guarded

    return Client(
        files=False if writes is None else Guarded(Files(on_change=writes.add), consent),
        terminals=False if terminals is None else Guarded(terminals, consent),
        permissions=consent,
        elicitation=elicitation,
        capabilities=partial(_shown, view),
    )


def supported_servers(
    servers: Sequence[v1.McpServer], remote: RemoteAgent, note: Callable[[str], None]
) -> list[v1.McpServer]:
    """The MCP servers that the agent supports. Reports each of the others."""
    usable: list[v1.McpServer] = []
    for server in servers:
        if remote.peer.capabilities.allow(server):
            usable.append(server)
        else:
            name = getattr(server, "name", "of unknown type")
            note(f"accord run: MCP server {name} not used: the agent does not support its transport")
    return usable
