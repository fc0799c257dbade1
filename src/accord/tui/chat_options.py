"""`ChatOptions`: how a chat begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from textual.message import Message

from accord.pictures.asking import Graphics
from accord.schema import v1
from accord.tui.connection import AgentChoice, ConnectionOptions
from accord.tui.worktrees import Worktree

Clock: TypeAlias = Callable[[Message], float]
"""Says when an event of the screen came."""


@dataclass(frozen=True)
class ChatOptions:
    """How a chat begins."""

    folder: Path
    agents: Sequence[AgentChoice] = ()
    """The agents that the user may choose from."""
    find_agent: Callable[[str], AgentChoice] | None = None
    """Finds an agent of the registry by its id; None if only `agents` are offered."""
    prompt: str | None = None
    """What is sent first."""
    session_id: str | None = None
    """The session to open again."""
    continues: bool = False
    """Whether the latest session of the folder is opened again."""
    mode: str | None = None
    model: str | None = None
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: Sequence[v1.McpServer] = ()
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    theme: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other keys, by the names of actions."""
    bell: bool = True
    """Whether the bell rings when an agent asks or ends a turn while the user looks elsewhere."""
    is_ascii: bool = False
    is_coloured: bool = True
    graphics: Graphics = field(default_factory=Graphics)
    """How the terminal shows images."""
    typed: str = ""
    """What the user typed before the screen was there."""
    worktrees: list[Worktree] = field(default_factory=list[Worktree])
    """The git worktrees that were made; the first session works in the first one, and the chat adds its own."""
    keeps: bool = True
    """Whether drafts and prompts are kept between runs."""
    clock: Clock = attrgetter("time")
    """Says when a key came, in seconds."""
