"""A permission request as whoever decides sees it, and an answer in the options that the agent offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from accord.schema import v1
from accord.services.permissions.subject import command_of, paths_of
from accord.services.service import ServedSession
from accord.state import ToolCallState

Choice: TypeAlias = "v1.PermissionOption | str | bool | None"
"""An option or its id; True for allow (once, if that is offered); False or None for reject."""

Ask: TypeAlias = "Callable[[PermissionQuestion], Choice | Awaitable[Choice]]"

READS: tuple[v1.ToolKind, ...] = ("read", "search", "fetch", "think")
"""The kinds of tools that only look."""


@dataclass(frozen=True)
class PermissionQuestion:
    """May the agent do this?"""

    session: ServedSession
    tool_call: ToolCallState
    """What it wants to do, as all of its updates have made it."""
    options: Sequence[v1.PermissionOption]

    @property
    def allow(self) -> v1.PermissionOption | None:
        return self.option("allow_once", "allow_always")

    @property
    def reject(self) -> v1.PermissionOption | None:
        return self.option("reject_once", "reject_always")

    def option(self, *kinds: v1.PermissionOptionKind) -> v1.PermissionOption | None:
        """The first option of the first of these kinds that is offered."""
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The files that it says it works on, by their real paths."""
        return paths_of(self.tool_call, Path(self.session.cwd))

    @cached_property
    def command(self) -> str | Sequence[str] | None:
        """What it wants to run: a line for a shell, or a program and its arguments."""
        return command_of(self.tool_call)

    def chosen(self, choice: Choice) -> v1.PermissionOption | None:
        """The option that a choice means; None where the agent offers none of that sort."""
        if choice is True:
            return self.allow
        if choice is False or choice is None:
            return self.reject
        option_id = choice.option_id if isinstance(choice, v1.PermissionOption) else choice
        for option in self.options:
            if option.option_id == option_id:
                return option
        offered = ", ".join(sorted(option.option_id for option in self.options))
        raise ValueError(f"{option_id!r} was not offered; {offered or 'nothing'} was")


def allow_all(_: PermissionQuestion) -> bool:
    """Allow everything."""
    return True


def allow_reads(question: PermissionQuestion) -> bool:
    """Allow what only looks."""
    return question.tool_call.kind in READS


def refuse(_: PermissionQuestion) -> bool:
    """Allow nothing."""
    return False


ALLOWANCES: dict[Literal["all", "reads", "none"], Ask] = {"all": allow_all, "reads": allow_reads, "none": refuse}
