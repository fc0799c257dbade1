"""How a session stands: at work, idle, waiting for its user; and what runs in the background. Proposal: prompt.

New in version 2. An idle update ends a turn and says why; in version 1 the answer to the prompt does.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from accord.schema.base import Model, Open, Tolerant, Unstable, second_tag, unstable
from accord.schema.v1.prompt import Usage
from accord.schema.v1.session import SessionId
from accord.schema.v1.terminal import TerminalId
from accord.schema.v1.tools import ToolCallId
from accord.schema.v2.protocol import Error


class BackgroundToolCall(Model, tag_field="type", tag="tool_call"):
    """A tool call that continues in the background."""

    tool_call_id: ToolCallId


class BackgroundTerminal(Model, tag_field="type", tag="terminal"):
    """A terminal whose command continues in the background."""

    terminal_id: TerminalId


@unstable
class BackgroundSubagent(Model, tag_field="type", tag="subagent"):
    """A subagent that works in the background."""

    session_id: SessionId


BackgroundWork: TypeAlias = Open[BackgroundToolCall | BackgroundTerminal | BackgroundSubagent]


# In all of these, `background` is everything that runs there now; None says nothing about it, an empty list: nothing.


class RunningStateUpdate(Model, tag_field="state", tag="running"):
    """The session is at work, on a prompt or on its own."""

    background: Tolerant[list[BackgroundWork] | None] = None


class IdleStateUpdate(Model, tag_field="state", tag="idle"):
    """The session is idle; `stop_reason` says why work ended, and `error` comes with the reason `error`.

    Other words are kept; what else comes with them is not.
    """

    stop_reason: Tolerant[str | None] = None
    usage: Unstable[Tolerant[Usage | None]] = None
    error: Tolerant[Error | None] = None
    background: Tolerant[list[BackgroundWork] | None] = None


class RequiresActionStateUpdate(Model, tag_field="state", tag="requires_action"):
    """The session cannot continue without the user."""

    background: Tolerant[list[BackgroundWork] | None] = None


@unstable
class UnknownStateUpdate(Model, tag_field="state", tag="unknown"):
    """The agent does not know the session's state."""

    background: Tolerant[list[BackgroundWork] | None] = None


StateUpdate: TypeAlias = Open[RunningStateUpdate | IdleStateUpdate | RequiresActionStateUpdate | UnknownStateUpdate]
"""A snapshot: it replaces the one before."""


class SessionStateUpdate(Model, tag_field="sessionUpdate", tag="state_update"):
    """A `StateUpdate` as a session update, all of its variants in one."""

    state: Annotated[Literal["running", "idle", "requires_action", "unknown"], second_tag(StateUpdate)]
    stop_reason: Tolerant[str | None] = None
    usage: Unstable[Tolerant[Usage | None]] = None
    error: Tolerant[Error | None] = None
    background: Tolerant[list[BackgroundWork] | None] = None
