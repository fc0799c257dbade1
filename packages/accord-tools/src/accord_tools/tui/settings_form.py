"""`SettingsForm`: all settings of the chat, what holds and from where that comes; a change holds at once and is kept.

It writes the user's own file, the one that `read_settings` reads, and leaves the rest of its text as it is.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from accord import Budget, ConfigurationError
from accord.services import LEVELS
from accord_tools.configuration.agents_file import set_value, user_file
from accord_tools.tui.chat_settings import IMAGES
from accord_tools.tui.pickers import Entry, Picker

if TYPE_CHECKING:
    from accord_tools.tui.shell import ChatShell


class Setting(NamedTuple):
    """A setting as the form shows it."""

    title: str
    section: tuple[str, ...]
    """Where it stands in the file: the names of its table."""
    key: str
    does: str
    choices: Sequence[str | bool] = ()
    """What it may be; without any, it is a number that is typed, or none."""
    now: Any = None
    """What holds in this chat."""
    is_default: bool = True
    """Whether that is what the chat takes without a setting."""

    def parse(self, text: str) -> str | bool | int | float | None:
        """The value that was chosen or typed; None for no limit, ValueError for what it cannot be."""
        if self.choices:
            return next(it for it in self.choices if _word(it) == text)
        if not text.strip() or text == NO_LIMIT:
            return None
        value = int(text) if self.key == "max_turns" else float(text)
        limits: dict[str, Any] = {self.key: value}
        Budget(**limits)
        return value

    @property
    def shown(self) -> str:
        """What holds, in a word."""
        return NO_LIMIT if self.now is None else _word(self.now)


NO_LIMIT = "no limit"


def _word(value: object) -> str:
    return (
        ("on" if value else "off")
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def written_settings() -> dict[str, Any]:
    """What the user's file says, as it is written; empty if it says nothing."""
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return tomllib.loads(user_file().read_text(encoding="utf-8-sig"))
    return {}


def source_of(setting: Setting, written: Any) -> str:
    """Where the value of a setting comes from."""
    for name in (*setting.section, setting.key):
        written = cast("dict[str, Any]", written).get(name) if isinstance(written, dict) else None
    if written is not None and written == setting.now:
        return f"from {user_file().name}"
    return "" if setting.is_default else "of this chat"


class SettingsForm:
    """The settings of a chat, as a list in which each can be changed."""

    def __init__(self, app: ChatShell) -> None:
        self._app = app

    async def run(self) -> None:
        """Show the settings, and change them, until the user closes the form."""
        marked, problem = "", ""
        while True:
            written = written_settings()
            entries = [
                Entry(
                    it.title,
                    it,
                    " · ".join(filter(None, (it.shown, source_of(it, written), it.does))),
                    it.title == marked,
                )
                for it in self._all()
            ]
            hint = f"{problem or 'enter: change   esc: close'}\n{user_file()}"
            setting: Setting | None = await self._app.ask_for(Picker("Settings", entries, hint))
            if setting is None:
                return
            marked, problem = setting.title, ""
            try:
                await self._change(setting)
            except (ValueError, ConfigurationError) as error:
                problem = str(error)

    def _all(self) -> list[Setting]:
        chat, options, limits = ("chat",), self._app.options, self._limits()
        themes = sorted(self._app.available_themes)
        agents = [it.name for it in options.agents if not it.is_demo]
        connection = None if self._app.front is None else self._app.front.connection
        default = str(written_settings().get("default", ""))
        shown = [
            Setting("theme", chat, "theme", "the colours", themes, self._app.theme, options.theme is None),
            Setting(
                "sidebar",
                chat,
                "sidebar",
                "plan, files and usage beside the text",
                (True, False),
                self._app.sidebar,
                self._app.sidebar,
            ),
            Setting("bell", chat, "bell", "rings while you look elsewhere", (True, False), options.bell, options.bell),
            Setting(
                "images", chat, "images", "from the next start on", IMAGES, options.images, options.images == "auto"
            ),
            Setting("default agent", (), "default", "the one of accord run and chat", agents, default or "none"),
        ]
        if connection is not None:
            folder, name = str(self._app.in_front.folder), connection.choice.name
            level, about = connection.consent.level, "without a question"
            is_default = level == "ask"
            shown.append(
                Setting("allow here", ("allow",), folder, f"{about}, in this folder", LEVELS, level, is_default)
            )
            if name in written_settings().get("agents", {}):
                shown.append(
                    Setting("allow agent", ("agents", name), "allow", f"{about}, {name}", LEVELS, level, is_default)
                )
        for key, about in (
            ("max_cost", "of a turn, as the agent reports it"),
            ("max_turns", "rounds of tools"),
            ("max_time", "seconds of a turn"),
        ):
            shown.append(Setting(key.replace("_", " "), chat, key, about, (), limits.get(key), key not in limits))
        return shown

    def _limits(self) -> dict[Any, float]:
        budget = self._app.options.connection.budget
        return {} if budget is None else budget.limits

    async def _change(self, setting: Setting) -> None:
        """Have the user choose a value, keep it in their file, and let it hold."""
        names = [setting._replace(now=it).shown for it in setting.choices] or [NO_LIMIT]
        entries = [Entry(it, it, "", it == setting.shown) for it in names]
        before, preview = self._app.theme, self._show_theme if setting.key == "theme" else None
        picker = Picker(setting.title, entries, on_highlight=preview, takes_text=not setting.choices)
        chosen = await self._app.ask_for(picker)
        if chosen is None:
            self._app.theme = before
            return
        value = setting.parse(chosen)
        await asyncio.to_thread(set_value, user_file(), setting.section, setting.key, value)
        self._apply(setting, value)

    def _show_theme(self, name: str) -> None:
        self._app.theme = name

    def _apply(self, setting: Setting, value: Any) -> None:
        match setting.key:
            case "theme":
                self._app.theme = value
                self._app.options = replace(self._app.options, theme=value)
            case "sidebar":
                self._app.sidebar = value
            case "bell" | "images":
                self._app.options = replace(self._app.options, **{setting.key: value})
            case "max_cost" | "max_turns" | "max_time":
                limits: dict[str, Any] = {**self._limits(), setting.key: value}
                left = {name: most for name, most in limits.items() if most is not None}
                connection = replace(self._app.options.connection, budget=Budget(**left) if left else None)
                self._app.options = replace(self._app.options, connection=connection)
                for one in self._app.connections:
                    one.options = replace(one.options, budget=connection.budget)
            case "default":
                pass
            case _:
                self._app.in_front.connection.consent.level = value
        self._app.mark()
