"""The chat's own commands: one table for completion, help, documentation and execution.

An agent's command of the same name comes first; ours is then `/accord:NAME`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accord import updates
from accord.mistakes import meant
from accord.printable import label
from accord.session import SessionState

PREFIX = "accord:"


class SlashCommand(NamedTuple):
    """A command of the chat."""

    name: str
    action: str
    """The action of the app that it runs, with the text after the name as its argument."""
    does: str
    argument: str = ""
    """A word for the argument; empty if there is none."""


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("help", "help", "keys and commands"),
    SlashCommand("model", "set_model", "choose the model", "MODEL"),
    SlashCommand("mode", "set_mode", "choose the mode", "MODE"),
    SlashCommand("config", "config", "model and other options"),
    SlashCommand("sessions", "sessions", "sessions of the agent: open, delete"),
    SlashCommand("resume", "resume", "open a session again", "ID"),
    SlashCommand("new", "new_session", "new session with this agent"),
    SlashCommand("worktree", "worktree", "new session in a new git worktree", "NAME"),
    SlashCommand("clear", "clear_session", "new session instead of this one"),
    SlashCommand("agent", "agents", "start another agent"),
    SlashCommand("compare", "compare", "send a prompt to this agent and another one", "TEXT"),
    SlashCommand("rewind", "rewind", "go back to a message, with or without the files"),
    SlashCommand("fork", "fork", "copy this session"),
    SlashCommand("close", "close_session", "close this session"),
    SlashCommand("delete", "delete_session", "delete this session for good"),
    SlashCommand("title", "set_title", "set the title of this session", "TITLE"),
    SlashCommand("export", "export", "write the conversation to a file: .md, .html or .json", "FILE"),
    SlashCommand("image", "image", "attach a file, or the image of the clipboard", "FILE"),
    SlashCommand("changes", "review", "review all changes of files, and undo them"),
    SlashCommand("undo", "undo", "undo the last change of a file"),
    SlashCommand("plan", "plan", "show or fold the plan"),
    SlashCommand("btw", "steer", "send into the running turn", "TEXT"),
    SlashCommand("goal", "goal", "the agent's goal; set it, or: pause, resume, clear", "GOAL"),
    SlashCommand("usage", "usage", "tokens and cost"),
    SlashCommand("settings", "settings", "theme, permission, budgets and other settings, with their sources"),
    SlashCommand("theme", "set_theme", "choose the colours", "THEME"),
    SlashCommand("login", "login", "log in to the agent"),
    SlashCommand("logout", "logout", "log out of the agent"),
    SlashCommand("restart", "restart", "start the agent again, and resume the session"),
    SlashCommand("wire", "wire", "messages on the wire"),
    SlashCommand("trace", "trace", "write the latest messages on the wire to a file", "FILE"),
    SlashCommand("inspect", "inspect", "open the inspector on this session"),
    SlashCommand("allow", "set_level", "what the agent may do without a question", "LEVEL"),
    SlashCommand("permissions", "permissions", "everything that is allowed or refused without a question; revoke it"),
    SlashCommand("mcp", "mcp", "MCP servers of the session"),
    SlashCommand("about", "about", "the agent, the session and what the agent offers"),
    SlashCommand("quit", "leave", "leave the chat"),
)


def typed(state: SessionState) -> list[updates.Command]:
    """The agent's commands that are called by a slash and their name, which skills are not."""
    return [it for it in state.commands if isinstance(it, updates.Command)]


def find(text: str, offered: Sequence[updates.Command]) -> tuple[SlashCommand, str] | None:
    """Return our command that a prompt calls, and its argument; None if it is for the agent."""
    if not text.startswith("/"):
        return None
    name, _, argument = text[1:].partition(" ")
    name = name.strip()
    is_ours = name.startswith(PREFIX)
    if not is_ours and any(command.name == name for command in offered):
        return None
    wanted = name.removeprefix(PREFIX)
    command = next((it for it in COMMANDS if it.name == wanted), None)
    return None if command is None else (command, argument.strip())


def mistyped(text: str, offered: Sequence[updates.Command]) -> str:
    """Return why a text is not sent: it begins like a command that does not exist. Empty for a prompt; a path is one.

    >>> mistyped("/mdoel fast", [])
    '/mdoel is not a command; did you mean /model? Put a space before it to send it as text'
    >>> mistyped("/etc/hosts is wrong", []), mistyped("/ or not", [])
    ('', '')
    """
    name = text.partition("\n")[0].split(" ")[0]
    known = [f"/{command.name}" for command in offered] + [f"/{command.name}" for command in COMMANDS]
    if not name.startswith("/") or name in known or "/" in name[1:] or len(name) < 2:
        return ""
    hint = meant(name, known) or "; /help lists all."
    return f"{label(name, 60)} is not a command{hint} Put a space before it to send it as text"


def offered_commands(offered: Sequence[updates.Command]) -> list[tuple[str, str]]:
    """Return all commands that can be typed, the agent's first: names and descriptions."""
    names = {command.name for command in offered}
    agents = [(label(it.name, 60), label(_about(it), 200)) for it in offered[:500]]
    ours = [(f"{PREFIX}{it.name}" if it.name in names else it.name, _shown(it)) for it in COMMANDS]
    return [*agents, *ours]


def _about(command: updates.Command) -> str:
    hint = str(getattr(command.input, "hint", None) or "").strip("[]<>")
    return f"{command.description} [{hint}]" if hint else command.description


def _shown(command: SlashCommand) -> str:
    return f"{command.does} [{command.argument}]" if command.argument else command.does


def table() -> str:
    """The commands as a table of Markdown."""
    lines = ["| command | what it does |", "|---|---|"]
    for command in COMMANDS:
        argument = f" {command.argument}" if command.argument else ""
        lines.append(f"| `/{command.name}{argument}` | {command.does} |")
    return "\n".join(lines)
