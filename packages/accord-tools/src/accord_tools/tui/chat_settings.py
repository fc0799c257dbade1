"""`ChatOptions`: the beginning of a chat; and the user's settings: the table `[chat]` of the file with their named
agents.

    [chat]
    theme = "nord"
    remember = true                 an agent's "always" holds in this folder in later chats, too
    images = "blocks"               how images are shown, whatever the terminal says
    keys = { sessions = "f2" }      other keys, by the names of actions

Only the user's own file is read: a project must not rebind keys.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec
from textual.message import Message

from accord import Budget, ConfigurationError, v1
from accord.mistakes import nearest
from accord_tools.configuration.agents_file import user_file
from accord_tools.pictures.terminal_graphics import Graphics
from accord_tools.tui.chat_storage import Worktree
from accord_tools.tui.connection import AgentChoice, ConnectionOptions
from accord_tools.tui.key_bindings import KEYS

Images: TypeAlias = Literal["auto", "kitty", "iterm2", "sixel", "blocks"]
IMAGES: Sequence[Images] = get_args(Images)


class ChatSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's settings for the chat."""

    theme: str | None = None
    """The name of a theme; `/theme` lists them."""
    remember: bool = False
    """Whether an "always" answer applies to later chats, too."""
    bell: bool = True
    """Whether the bell rings when an agent asks or ends a turn while the user looks elsewhere."""
    images: Images = "auto"
    """How images are shown: `auto` asks the terminal."""
    keys: dict[str, str] = {}
    """Other keys, by the names of actions."""
    sidebar: bool = True
    """Whether the sidebar is shown where there is room for it."""
    max_cost: float | None = None
    """The most a turn may cost, in the currency that the agent reports."""
    max_turns: int | None = None
    """The most rounds in which a turn may use tools."""
    max_time: float | None = None
    """Seconds that a turn may take."""

    def budget(self, **given: Any) -> Budget | None:
        """Return the budget of each turn; options take precedence over settings."""
        limits = {
            name: getattr(self, name) if given.get(name) is None else given[name]
            for name in ("max_cost", "max_turns", "max_time")
        }
        return Budget(**limits) if any(most is not None for most in limits.values()) else None


def read_settings() -> ChatSettings:
    """Return the settings of the user's file; raises ConfigurationError for invalid ones, with the place."""
    path = user_file()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return ChatSettings()
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    return parse(document.get("chat", {}), f"{path}: [chat]")


def parse(given: Any, source: str) -> ChatSettings:
    """Return the settings of a table; raises ConfigurationError, which names the place.

    >>> parse({"keys": {"sessions": "f2"}}, "file").keys
    {'sessions': 'f2'}
    """
    if not isinstance(given, dict):
        raise ConfigurationError(f"{source} must be a table, got {given!r}")
    known = ChatSettings.__struct_fields__
    for key in cast("dict[str, Any]", given):
        if key not in known:
            raise ConfigurationError(f"{source}: unknown key {key!r}{nearest(key, known)}")
    try:
        settings = msgspec.convert(given, ChatSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{source}: {error}") from None
    try:
        settings.budget()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{source}: {error}") from None
    actions = [key.action for key in KEYS if key.action]
    for action in settings.keys:
        if action not in actions:
            raise ConfigurationError(f"{source}: keys has no action {action!r}{nearest(action, actions)}")
    return settings


Clock: TypeAlias = Callable[[Message], float]
"""Returns when an event of the screen came."""


@dataclass(frozen=True)
class ChatOptions:
    """The options with which a chat begins."""

    folder: Path
    agents: Sequence[AgentChoice] = ()
    """The agents that the user may choose from."""
    images: Images = "auto"
    about: str = ""
    """The text below the list of agents: which keys of models are set."""
    find_agent: Callable[[str], AgentChoice] | None = None
    """Finds an agent of the registry by its id; None if only `agents` are offered."""
    prompt: str | None = None
    """The first prompt."""
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
    sidebar: bool = True
    """Whether the sidebar is shown where there is room for it."""
    graphics: Graphics = field(default_factory=Graphics)
    """How the terminal shows images."""
    typed: str = ""
    """The user's input before the screen appeared."""
    worktrees: list[Worktree] = field(default_factory=list[Worktree])
    """The git worktrees that were made; the first session works in the first one, and the chat adds its own."""
    keeps: bool = True
    """Whether drafts and prompts are stored between runs."""
    clock: Clock = attrgetter("time")
    """Returns when a key came, in seconds."""
