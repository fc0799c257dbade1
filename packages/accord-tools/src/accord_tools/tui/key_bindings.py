"""The keys: one table from which the bindings, the footer, the help and the documentation are made.

`ctrl+j` breaks a line in every terminal; `shift+enter` only in those that report it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.binding import Binding

Group = Literal["Writing", "The agent", "Reading", "Sessions", "The chat", "A question", "A chosen block"]


class Key(NamedTuple):
    """One key, its action, and where it is documented."""

    key: str
    """The keys, separated by commas, as Textual names them."""
    action: str
    """The action of the app; empty for a key that a widget handles itself."""
    does: str
    """Its effect, in a few words."""
    group: Group
    footer: str = ""
    """The word of the footer, for the most used keys."""


KEYS: tuple[Key, ...] = (
    Key("enter", "", "send; queue while the agent works", "Writing", "send"),
    Key("ctrl+j,shift+enter,alt+enter", "", "begin a new line", "Writing"),
    Key("up,down", "", "earlier and later prompts, from the first and last line", "Writing"),
    Key("tab", "", "complete a command, or a file after @; accept a suggestion of the agent", "Writing"),
    Key("ctrl+r", "history", "search in earlier prompts", "Writing"),
    Key("ctrl+e", "external_editor", "write in $EDITOR", "Writing"),
    Key("ctrl+u", "unqueue", "take back an attached file, or the newest queued prompt", "Writing"),
    Key("ctrl+v", "paste_image", "attach the image of the clipboard", "Writing"),
    Key("ctrl+c", "clear_or_quit", "clear the line; twice: quit", "Writing"),
    Key("escape", "stop", "stop the agent, or the command of !; again: force it", "The agent", "stop"),
    Key("ctrl+b", "steer", "send into the running turn", "The agent"),
    Key(
        "shift+tab", "next_level", "choose what needs no question: reading, changes or everything", "The agent", "allow"
    ),
    Key("alt+m", "next_mode", "next mode of the agent", "The agent"),
    Key("ctrl+g", "config", "model and other options", "The agent", "model"),
    Key("pageup,pagedown", "", "scroll the conversation", "Reading"),
    Key("ctrl+end", "end", "go to the end", "Reading"),
    Key("alt+up", "previous_block", "choose the block above", "Reading"),
    Key("alt+down", "next_block", "choose the block below", "Reading"),
    Key("ctrl+o", "tools", "show or fold the output of all tools", "Reading", "tools"),
    Key("ctrl+t", "thoughts", "show or fold thoughts", "Reading"),
    Key("ctrl+l", "plan", "show or fold the plan", "Reading"),
    Key("f3", "sidebar", "show or hide the sidebar, in a screen of 120 columns or more", "Reading"),
    Key("ctrl+f", "find", "find in the conversation", "Reading"),
    Key("ctrl+y", "copy_answer", "copy the last answer", "Reading"),
    Key("ctrl+d", "review", "review all changes of files", "Reading"),
    Key("enter,space", "", "open or fold", "A chosen block"),
    Key("y", "", "copy", "A chosen block"),
    Key("k", "", "end the command, if it runs here", "A chosen block"),
    Key("y", "", "allow once", "A question"),
    Key("a", "", "allow always", "A question"),
    Key("n", "", "reject once", "A question"),
    Key("N", "", "reject always", "A question"),
    Key("A", "", "always, and where: in this session, this folder, every folder", "A question"),
    Key("1-9", "", "an option by its number", "A question"),
    Key("r", "", "reject, and say what to do instead", "A question"),
    Key("d", "", "show all of it", "A question"),
    Key("ctrl+s", "sessions", "sessions of the agent", "Sessions", "sessions"),
    Key("ctrl+n", "new_session", "new session", "Sessions"),
    Key("alt+r", "rewind", "go back to a message", "Sessions"),
    Key("ctrl+a", "agents", "start another agent", "Sessions"),
    Key("ctrl+w", "close_session", "close the session", "Sessions"),
    Key("alt+right", "next_session", "next session", "Sessions"),
    Key("alt+left", "previous_session", "previous session", "Sessions"),
    Key("alt+1 to alt+9", "", "go to a session", "Sessions"),
    Key("ctrl+x", "wire", "messages on the wire", "The chat"),
    Key("f1", "help", "keys and commands", "The chat", "help"),
    Key("ctrl+q", "leave", "quit", "The chat"),
)


def bindings() -> list[Binding]:
    """The bindings of the app."""
    named = [(it.key, f"do('{it.action}')", it.does) for it in KEYS if it.action]
    numbered = [(f"alt+{number}", f"go_to({number})", f"session {number}") for number in range(1, 10)]
    return [Binding(*it, show=False, priority=it[0] != "escape") for it in (*named, *numbered)]


def keep_alt_digits() -> None:
    """Report alt with a digit as that key on terminals which send escape before the digit.

    Textual interprets these sequences as characters of one terminal of macOS; every other terminal means the key, with
    which the chat switches sessions.
    """
    sequences = cast("dict[str, object]", ANSI_SEQUENCES_KEYS)
    for digit in "123456789":
        sequences.pop(f"\x1b{digit}", None)


def shown(key: str) -> str:
    """Return a key as people write it.

    >>> shown("ctrl+j,shift+enter")
    'ctrl+j'
    """
    return {"escape": "esc", "pageup,pagedown": "page up, page down", "up,down": "up, down"}.get(
        key, key if key == "enter,space" else key.partition(",")[0]
    )


def footer(width: int) -> list[tuple[str, str]]:
    """Return the keys and words of the footer that fit into this many columns; the help always does."""
    wanted = [(shown(key.key), key.footer) for key in KEYS if key.footer]
    *others, last = wanted
    left = width - len(last[0]) - len(last[1]) - 3
    fitting: list[tuple[str, str]] = []
    for name, word in others:
        left -= len(name) + len(word) + 4
        if left < 0:
            break
        fitting.append((name, word))
    return [*fitting, last]


def table(keys: Iterable[Key] = KEYS) -> str:
    """The keys as a table of Markdown."""
    lines: list[str] = ["| key | what it does |", "|---|---|"]
    group = ""
    for key in keys:
        if key.group != group:
            group = key.group
            lines.append(f"| **{group}** | |")
        lines.append(f"| `{shown(key.key)}` | {key.does} |")
    return "\n".join(lines)
