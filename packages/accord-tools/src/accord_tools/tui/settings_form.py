"""`SettingsForm`: all settings of the chat with their values and sources; a change applies at once and is stored.

It writes the user's own file, the one that `read_settings` reads, and preserves the rest of its text.
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
    """Its place in the file: the names of its table."""
    key: str
    does: str
    choices: Sequence[str | bool] = ()
    """The possible values; without any, it is a number that is typed, or none."""
    now: Any = None
    """The value that applies in this chat."""
    is_default: bool = True
    """Whether it is the chat's default."""

    def parse(self, text: str) -> str | bool | int | float | None:
        """Return the value that was chosen or typed; None for no limit, ValueError for an invalid one."""
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
        """The value in one word."""
        return NO_LIMIT if self.now is None else _word(self.now)


NO_LIMIT = "no limit"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def written_settings() -> dict[str, Any]:
    """Return the text of the user's file; empty if there is none."""
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return tomllib.loads(user_file().read_text(encoding="utf-8-sig"))
    return {}


def source_of(setting: Setting, written: Any) -> str:
    """Return the source of a setting's value."""
    for name in (*setting.section, setting.key):
        written = cast("dict[str, Any]", written).get(name) if isinstance(written, dict) else None
    if written is not None and written == setting.now:
        return f"from {user_file().name}"
    return "" if setting.is_default else "of this chat"


async def change_settings(app: ChatShell) -> None:
    """Show the settings, and change them, until the user closes the list."""
    marked, problem = "", ""
    while True:
        written = written_settings()
        entries = [
            Entry(
                it.title, it, " · ".join(filter(None, (it.shown, source_of(it, written), it.does))), it.title == marked
            )
            for it in _settings(app, written)
        ]
        hint = f"{problem or 'enter: change   esc: close'}\n{user_file()}"
        setting: Setting | None = await app.ask_for(Picker("Settings", entries, hint))
        if setting is None:
            return
        marked, problem = setting.title, ""
        try:
            await _change(app, setting)
        except (ValueError, ConfigurationError) as error:
            problem = str(error)


def _settings(app: ChatShell, written: dict[str, Any]) -> list[Setting]:
    options, limits = app.options, _limits(app)
    agents = [it.name for it in options.agents if not it.is_demo]
    switches = (True, False)

    def chat(key: str, does: str, choices: Sequence[str | bool], now: Any, *, is_default: bool) -> Setting:
        return Setting(key.replace("_", " "), ("chat",), key, does, choices, now, is_default)

    side = "plan, files and usage beside the text"
    shown = [
        chat("theme", "the colours", sorted(app.available_themes), app.theme, is_default=options.theme is None),
        chat("sidebar", side, switches, app.sidebar, is_default=app.sidebar),
        chat("bell", "rings while you look elsewhere", switches, options.bell, is_default=options.bell),
        chat("images", "from the next start on", IMAGES, options.images, is_default=options.images == "auto"),
    ]
    default = str(written.get("default", "")) or "none"
    shown.append(Setting("default agent", (), "default", "used by accord run and accord chat", agents, default))
    if app.front is not None:
        name, level = app.front.connection.choice.name, app.front.connection.consent.level
        places: list[tuple[str, tuple[str, ...], str, str]] = [
            ("here", ("allow",), str(app.front.folder), "in this folder"),
            ("agent", ("agents", name), "allow", name),
        ]
        for place, section, key, about in places[: 1 + (name in written.get("agents", {}))]:
            does = f"without a question, {about}"
            shown.append(Setting(f"allow {place}", section, key, does, LEVELS, level, level == "ask"))
    for key, about in (
        ("max_cost", "of a turn, as the agent reports it"),
        ("max_turns", "rounds of tools"),
        ("max_time", "seconds of a turn"),
    ):
        shown.append(chat(key, about, (), limits.get(key), is_default=key not in limits))
    return shown


def _limits(app: ChatShell) -> dict[Any, float]:
    budget = app.options.connection.budget
    return {} if budget is None else budget.limits


async def _change(app: ChatShell, setting: Setting) -> None:
    """Let the user choose a value, store it in their file, and apply it."""
    names = [setting._replace(now=it).shown for it in setting.choices] or [NO_LIMIT]
    entries = [Entry(it, it, "", it == setting.shown) for it in names]
    before, preview = app.theme, app.show_theme if setting.key == "theme" else None
    picker = Picker(setting.title, entries, on_highlight=preview, takes_text=not setting.choices)
    chosen = await app.ask_for(picker)
    if chosen is None:
        app.theme = before
        return
    value = setting.parse(chosen)
    await asyncio.to_thread(set_value, user_file(), setting.section, setting.key, value)
    _apply(app, setting, value)


def _apply(app: ChatShell, setting: Setting, value: Any) -> None:
    match setting.key:
        case "theme":
            app.theme = value
            app.options = replace(app.options, theme=value)
        case "sidebar":
            app.sidebar = value
        case "bell" | "images":
            app.options = replace(app.options, **{setting.key: value})
        case "max_cost" | "max_turns" | "max_time":
            limits: dict[str, Any] = {**_limits(app), setting.key: value}
            left = {name: most for name, most in limits.items() if most is not None}
            connection = replace(app.options.connection, budget=Budget(**left) if left else None)
            app.options = replace(app.options, connection=connection)
            for one in app.connections:
                one.options = replace(one.options, budget=connection.budget)
        case "default":
            pass
        case _:
            app.in_front.connection.consent.level = value
    app.mark()
