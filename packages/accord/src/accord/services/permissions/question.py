"""A permission request as rules and users see it, and the choice of an option that the agent offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from accord.schema import v1
from accord.services.permissions.subject import command_of, paths_of
from accord.services.service import ServedSession
from accord.session import ToolCallState

if TYPE_CHECKING:
    from accord.schema import v2

Choice: TypeAlias = "v1.PermissionOption | str | bool | None"
"""An answer: an option or its id; True for allow (once, if that is offered); False or None for reject."""

Ask: TypeAlias = "Callable[[PermissionQuestion], Choice | Awaitable[Choice]]"
"""A function, async or not, that asks the user."""

READS: tuple[v1.ToolKind, ...] = ("read", "search", "fetch", "think")
"""The kinds of tools that change nothing."""


@dataclass(frozen=True)
class PermissionQuestion:
    """A permission request: may the agent run this tool call?"""

    session: ServedSession
    """The session that the tool call belongs to."""
    tool_call: ToolCallState
    """The tool call, with all of its updates so far.

    An agent of version 2 may ask about a command, or by a title alone. Then this stands for a tool call: it has the
    question's title, and the command as its input, and is not in the session's state.
    """
    options: Sequence[v1.PermissionOption]
    """The answers that the agent offers."""
    asked: str | None = None
    """The question's own title, which agents of version 2 send; `title` has what to show in either version."""
    description: str | None = None
    """More about the question; None from agents of version 1."""
    subject: v2.RequestPermissionSubject | None = None
    """What the question is about, as an agent of version 2 says it; None if it does not, and from version 1."""

    @property
    def title(self) -> str:
        """The question in one line: its own title, or that of its tool call."""
        return self.tool_call.title if self.asked is None else self.asked

    @property
    def allow(self) -> v1.PermissionOption | None:
        """The option that allows, once if that is offered."""
        return self.option("allow_once", "allow_always")

    @property
    def reject(self) -> v1.PermissionOption | None:
        """The option that rejects, once if that is offered."""
        return self.option("reject_once", "reject_always")

    def option(self, *kinds: v1.PermissionOptionKind) -> v1.PermissionOption | None:
        """The first option of the first of these kinds that is offered."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The files that the tool call names, by their real paths."""
        return paths_of(self.tool_call, Path(self.session.cwd))

    @cached_property
    def command(self) -> str | Sequence[str] | None:
        """The command of the tool call: a shell line, or a program and its arguments."""
        return command_of(self.tool_call)

    def chosen(self, choice: Choice) -> v1.PermissionOption | None:
        """The option that a choice means; None if the agent offers none of that kind."""
        if choice is True:
            return self.allow
        if choice is False or choice is None:
            return self.reject
        option_id = choice.option_id if isinstance(choice, v1.PermissionOption) else choice
        for option in self.options:
            if option.option_id == option_id:
                return option
        offered = ", ".join(sorted(option.option_id for option in self.options))
        raise ValueError(f"option {option_id!r} was not offered; the agent offers {offered or 'none'}")


def allow_all(_: PermissionQuestion) -> bool:
    """Allow everything."""
    return True


def allow_reads(question: PermissionQuestion) -> bool:
    """Allow tools that change nothing."""
    return question.tool_call.kind in READS


def refuse(_: PermissionQuestion) -> bool:
    """Allow nothing."""
    return False


ALLOWANCES: dict[Literal["all", "reads", "none"], Ask] = {"all": allow_all, "reads": allow_reads, "none": refuse}
