"""`View`: shows a turn to the person or program that started the command, as text or as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

from accord_tools.cli.catching_up import CatchingUp

if TYPE_CHECKING:
    from accord import AccordError, Outcome, RemoteSession, Reply, ServedSession, Terminal, v1
    from accord_tools.presentation.styled_text import Paragraph


class Opened(NamedTuple):
    """An open session, and what its agent says about itself."""

    session: RemoteSession
    agent: v1.Implementation | None
    version: int = 1
    """The version of the protocol that the connection speaks."""


FAILED = 64
"""Commands that failed of which a view keeps how they ended, the newest."""


class FailedCommands:
    """How the commands that we ran for the agent ended, those that failed, by the ids of their terminals."""

    def __init__(self) -> None:
        self._endings: dict[str, str] = {}

    async def watch(self, _session: ServedSession, terminal: Terminal) -> None:
        """Wait for the end of a command."""
        from accord.services.terminals.terminal import ending_of

        status = await terminal.wait()
        if status.exit_code != 0:
            self._endings[terminal.id] = ending_of(status.exit_code, status.signal)
            for old in list(self._endings)[:-FAILED]:
                del self._endings[old]

    def ending(self, terminal_id: str) -> str | None:
        """How this command ended; None if it has not failed."""
        return self._endings.get(terminal_id)


class View(ABC):
    """Shows one turn."""

    keeps_wire = False
    """Whether it needs the updates as the JSON that they came as."""

    shows_subagents = False
    """Whether it shows what subagents do."""

    def __init__(self, catching_up: CatchingUp | None = None) -> None:
        self.catching_up = catching_up or CatchingUp()
        self.failed_commands = FailedCommands()

    @abstractmethod
    def waiting(self, text: str) -> None:
        """Say what is waited for, where there is a place for that."""

    @abstractmethod
    async def opened(self, opened: Opened) -> None:
        """Show that the session is open, and what came with it."""

    @abstractmethod
    async def prompted(self, session: RemoteSession) -> None:
        """Take note that the prompt was sent just now."""

    @abstractmethod
    async def follow(self, reply: Reply) -> None:
        """Show the updates of a turn until its end."""

    @abstractmethod
    async def ended(self, session: RemoteSession, outcome: Outcome) -> None:
        """Show how the turn ended."""

    def stop(self) -> None:  # noqa: B027
        """Take away what moves, because the command ends."""

    @abstractmethod
    async def failed(self, error: AccordError) -> None:
        """Show the error that ended the turn, but for the line on standard error."""

    @abstractmethod
    def summary(self, *groups: Iterable[Paragraph]) -> None:
        """Show what is to be said after the turn: the written files, and the session."""

    @abstractmethod
    def interrupted(self) -> None:
        """Say that the agent was asked to stop."""

    @abstractmethod
    def agent_line(self, text: str) -> None:
        """Show a line of the agent's standard error."""

    @property
    @abstractmethod
    def is_asking(self) -> bool:
        """Whether a question to the user is open."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Show a line of ours on standard error."""

    @abstractmethod
    def asking(self) -> AbstractAsyncContextManager[None]:
        """While a question is open: what came before it is shown first, and nothing is printed over it."""
