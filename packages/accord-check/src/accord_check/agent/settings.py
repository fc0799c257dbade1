"""The permissions of a run against an agent, and its time limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from accord import ConfigurationError
from accord_check.checks import read_toml

if TYPE_CHECKING:
    import ssl

Profile = Literal["smoke", "default", "full", "fixture"]
"""The extent of a run.

`smoke` sends no prompt. `default` sends about ten, in version 2 about twenty. `full` sends about thirty, and tests all
of the agent's features. `fixture` is `full` for an agent that follows the script of the checks: everything must be
exercised then.
"""

NOTES = "notes.txt"
"""A file in the session's folder that prompts may name."""

FOLDER = "{folder}"
"""The placeholder in a prompt for the path of the session's folder."""


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The texts of the prompts, by purpose."""

    plain: str = "Reply with one short sentence."
    """Asks for a short answer."""
    slow: str = "Count from 1 to 500, in words, one number a line. Do not stop before you are done."
    """Works for some seconds, so that it can be cancelled."""
    edit: str = ""
    """Asks for permission and changes `notes.txt`; empty to leave that out."""
    mcp: str = ""
    """Makes the agent use the tool `accord_check` of an MCP server; empty for `plain`."""
    more: tuple[str, ...] = ()
    """Further prompts, for agents that need a word for their features."""


DEMO = PromptTexts(
    plain="Hello",
    slow="/slow 20",
    edit=f"/edit {NOTES}",
    more=(f"/read {NOTES}", "/plan", "/think", "/usage", "/form", "/image"),
)
"""The prompts for `accord demo`, whose commands show every feature."""


FIXTURE = PromptTexts(plain="check plain", slow="check slow", edit="check edit", mcp="check mcp")
"""The script of the profile fixture.

`check plain` is answered with some words. `check slow` sends some text at once, and works until it is cancelled. `check
edit` reports a tool call, asks for permission, and completes the call if it is allowed. `check mcp` starts the MCP
servers of the session, if they have not been started.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a run waits for the other side."""

    answer_within: float = 30.0
    """Seconds for an answer that needs no user."""
    quiet: float = 0.5
    """Seconds without a message after which nothing more is expected."""


@dataclass(frozen=True, slots=True)
class Settings(Patience):
    """The settings of a run."""

    profile: Profile = "default"
    prompts: PromptTexts = field(default_factory=PromptTexts)
    auth_method: str | None = None
    """The method to log in with before the first session."""
    terminal_login: bool = False
    """Whether an additional scenario asks for logins as a client that can open a terminal for them."""
    versions: tuple[int, ...] = (1,)
    """The versions of the protocol to judge; of several, those that the agent speaks."""
    url: str | None = None
    """The agent's address, if it has one; for requests over raw HTTP."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """The headers of these requests, such as a token."""
    tls: ssl.SSLContext | None = None
    """The certificates that these requests trust."""
    proxy: str | bool = True
    """The proxy for them: its URL, True for that of the environment, or False for none."""
    max_prompts: int | None = None
    """The most prompts that a run may send; None for as many as its scenarios have."""
    allow_delete: bool = False
    """Whether sessions that the checks have made may be deleted."""
    start_within: float = 60.0
    turn_within: float = 120.0
    grace: float = 3.0
    """Seconds that the agent has to end after the end of its input."""
    left_within: float = 3.0
    """Seconds that the processes which the agent has started have to end after it."""
    stops_within: float = 5.0
    """Seconds that a cancelled turn may take to end."""

    @property
    def prompting(self) -> bool:
        """Whether prompts are sent."""
        return self.profile != "smoke"


def read_prompts(path: str | Path) -> PromptTexts:
    """The prompts in a TOML file: `plain`, `slow`, `edit` and `mcp` as texts, `more` as a list of texts."""
    values = read_toml(path)
    for name, value in values.items():
        _check(str(path), name, value)
    if "more" in values:
        values["more"] = tuple(values["more"])
    return PromptTexts(**values)


def _check(path: str, name: str, value: Any) -> None:
    if name not in PromptTexts.__slots__:
        raise ConfigurationError(f"{path}: a prompt is plain, slow, edit, mcp or more, got {name!r}")
    if name != "more" and not isinstance(value, str):
        raise ConfigurationError(f"{path}: {name} must be a text, got {value!r}")
    texts = cast("list[Any]", value) if isinstance(value, list) else None
    if name == "more" and (texts is None or not all(isinstance(text, str) for text in texts)):
        raise ConfigurationError(f"{path}: more must be a list of texts, got {value!r}")
