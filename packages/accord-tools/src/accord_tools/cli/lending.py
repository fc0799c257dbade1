"""What `accord run` lends to the agent, as `--allow` and `--policy` say.

| `--allow` | lent | requests for permission |
|---|---|---|
| `all` | files and terminals | all are granted |
| `reads` | files to read | granted if they only read |
| `ask` | files and terminals, each use asked; forms and links at the terminal | the user decides |
| `none` | nothing | all are rejected |

The default is `ask` if a user sits at a terminal and can see the question, otherwise `none`. With `--policy`, files and
terminals are lent whatever `--allow` says: the rules decide about each use first, and `--allow` about the rest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from accord import ConfigurationError
from accord_tools.cli.endings import WrongUsage
from accord_tools.cli.refusals import Refusals
from accord_tools.cli.work_lines import Writes

if TYPE_CHECKING:
    from accord import Client, Elicitation, PermissionPolicy, RemoteAgent, Terminals, TerminalUser, v1
    from accord.services.permissions.guarded import Consent
    from accord.services.permissions.question import Ask
    from accord_tools.cli.kept_answers import KeptAnswers
    from accord_tools.cli.view import View

ALLOW = ["all", "reads", "ask", "none"]
NON_INTERACTIVE = ["deny", "fail"]

Allowed: TypeAlias = Literal["all", "reads", "ask", "none"]


class Lent(NamedTuple):
    """The client for the agent, and what came of it."""

    client: Client
    writes: Writes
    """The files that the agent wrote through the client."""
    refusals: Refusals | None
    """The requests that were refused without asking a user; None if a user is asked."""


@contextmanager
def lent(options: argparse.Namespace, view: View) -> Generator[Lent]:
    """The client that the options describe. Questions wait for `view`, which shows what happens."""
    from accord import Terminals
    from accord.services.permissions.question import ALLOWANCES

    allow, policy = allowed(options), policy_of(options)
    writes, terminals = Writes(options.cwd), Terminals(on_open=view.failed_commands.watch)
    if allow == "ask" and options.non_interactive is None:
        with _user(view) as (user, kept):
            from accord import Elicitation
            from accord.services.permissions.guarded import Consent

            consent = Consent(user.permit, policy=policy, remembered=kept, while_deciding=view.catching_up.stopped)
            yield Lent(_guarded(consent, writes, terminals, Elicitation(user.fill, user.visit)), writes, None)
        return
    grants: Ask = ALLOWANCES["none" if allow == "ask" else allow]
    refusals = Refusals(grants, view.note, fails=options.non_interactive == "fail")
    try:
        yield Lent(_without_user(allow, policy, refusals, writes, terminals), writes, refusals)
    finally:
        refusals.close()


def allowed(options: argparse.Namespace) -> Allowed:
    """What `--allow` says, or its default."""
    given: Allowed | None = options.allow
    if given is not None:
        return given
    return "ask" if not options.json and options.non_interactive is None and has_user() else "none"


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
def _user(view: View) -> Generator[tuple[TerminalUser, KeptAnswers]]:
    """The user at the terminal, and the file of the answers that they want to keep."""
    from accord import TerminalUser
    from accord_tools.cli.kept_answers import KeptAnswers

    kept = KeptAnswers(view.note)
    try:
        user = TerminalUser(while_asking=view.asking, keep=kept.keep)
    except OSError as error:
        raise WrongUsage(
            "--allow ask needs a terminal; use --allow all, reads or none, or --non-interactive deny"
        ) from error
    with user:
        yield user, kept


def _without_user(
    allow: Allowed, policy: PermissionPolicy | None, refusals: Refusals, writes: Writes, terminals: Terminals
) -> Client:
    from accord import Client, Files
    from accord.services.permissions.guarded import Consent

    if policy is not None or allow == "ask":
        return _guarded(Consent(refusals.answer, policy=policy), writes, terminals)
    files = {"all": Files(on_change=writes.add), "reads": Files(write=False)}.get(allow, False)
    return Client(files=files, terminals=terminals if allow == "all" else False, permissions=refusals.answer)


def _guarded(consent: Consent, writes: Writes, terminals: Terminals, elicitation: Elicitation | None = None) -> Client:
    """A client that lends files and terminals, of which each use needs consent."""
    from accord import Client, Files
    from accord.services.permissions.guarded import Guarded

    return Client(
        files=Guarded(Files(on_change=writes.add), consent),
        terminals=Guarded(terminals, consent),
        permissions=consent,
        elicitation=elicitation,
    )


def has_user() -> bool:
    """Whether we are in the foreground of a terminal, with a user who sees what is written there."""
    if sys.platform == "win32":
        return False
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):  # closed streams
        return False


def supported(servers: Sequence[v1.McpServer], remote: RemoteAgent, note: Callable[[str], None]) -> list[v1.McpServer]:
    """The MCP servers that the agent supports. Reports each of the others."""
    usable: list[v1.McpServer] = []
    for server in servers:
        if remote.peer.capabilities.allow(server):
            usable.append(server)
        else:
            name = getattr(server, "name", "of unknown type")
            note(f"accord run: MCP server {name} not used: the agent does not support its transport")
    return usable
