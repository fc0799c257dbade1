"""Agents in the settings of other clients: read from Zed, JetBrains and acpx, and written for them. PURE.

| client | file | its agents |
|---|---|---|
| `zed` | `settings.json`, with comments | `agent_servers`: `command`, `args`, `env`, or `type: registry` |
| `jetbrains` | `~/.jetbrains/acp.json` | `agent_servers`: `command`, `args`, `env` |
| `acpx` | `~/.acpx/config.json` | `agents`: `command`, which may have arguments |

Settings beside the agent's address are read if we have the same: the mode and config options of Zed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from accord import ConfigurationError
from accord.installation import own_command
from accord.trace.meaning import body_of, items_of
from accord_tools.configuration.agent_settings import NAME, AgentSettings

Client = Literal["zed", "jetbrains", "acpx"]

CLIENTS: tuple[Client, ...] = ("zed", "jetbrains", "acpx")
KEYS: dict[Client, str] = {"zed": "agent_servers", "jetbrains": "agent_servers", "acpx": "agents"}

# Strings are matched first, so that comment marks in them stay.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


def settings_file(client: Client) -> Path:
    """Return the path of a client's settings on this platform."""
    if client == "jetbrains":
        return Path.home() / ".jetbrains" / "acp.json"
    if client == "acpx":
        return Path.home() / ".acpx" / "config.json"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "Zed" / "settings.json"
    given = os.environ.get("XDG_CONFIG_HOME", "") if sys.platform == "linux" else ""
    return (Path(given) if given.startswith("/") else Path.home() / ".config") / "zed" / "settings.json"


def read_agents(client: Client, text: str, source: str) -> tuple[dict[str, AgentSettings], list[str]]:
    """Return the agents in a client's settings, by names that we can use, and the entries that cannot be read.

    Raises ConfigurationError for text that is not such settings.
    """
    try:
        document: Any = json.loads(without_comments(text))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{source}: {error}") from None
    given: Any = body_of(document).get(KEYS[client], {})
    if not isinstance(document, dict) or not isinstance(given, dict):
        raise ConfigurationError(f"{source}: must be an object with {KEYS[client]!r}, an object")
    found: dict[str, AgentSettings] = {}
    problems: list[str] = []
    for name, value in body_of(given).items():
        ours = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:64]
        settings = _settings(name, body_of(value)) if isinstance(value, dict) else "must be an object"
        if isinstance(settings, str):
            problems.append(f"{name}: {settings}")
        elif not NAME.fullmatch(ours) or ours in found:
            problems.append(f"{name}: cannot be made a name of letters, digits, - and _ that is free")
        else:
            found[ours] = settings
    return found, problems


def without_comments(text: str) -> str:
    """Return JSON without the comments and the commas at the end of lists that Zed allows."""
    return _COMMA.sub(lambda found: found[1] or "", _COMMENT.sub(lambda found: found[1] or " ", text))


def _settings(name: str, given: dict[str, Any]) -> AgentSettings | str:
    mode = given.get("default_mode")
    more: dict[str, Any] = {
        "env": {key: str(value) for key, value in body_of(given.get("env")).items()},
        "mode": mode if isinstance(mode, str) else None,
        "config": _options(given),
    }
    if given.get("type") == "registry":
        return AgentSettings(registry=name, **more)
    command: Any = given.get("command")
    arguments: Any = given.get("args", [])
    if isinstance(command, dict):  # of older versions of Zed
        place = body_of(command)
        command, arguments = place.get("path"), place.get("args", [])
    listed = items_of(arguments) if isinstance(arguments, list) else [None]
    words = [word for word in listed if isinstance(word, str)]
    if not isinstance(command, str) or not command.strip() or len(words) < len(listed):
        return "has no 'command'" if not command else "'command' must be a text, and 'args' a list of texts"
    start = [command] if words or Path(command).exists() else shlex.split(command, posix=os.name == "posix")
    return AgentSettings(command=[*start, *words], **more)


def _options(given: Mapping[str, Any]) -> dict[str, str | bool]:
    chosen = body_of(given.get("default_config_options"))
    found: dict[str, str | bool] = {key: value for key, value in chosen.items() if isinstance(value, str | bool)}
    model = given.get("default_model")
    return {"model": model, **found} if isinstance(model, str) else found


def snippet(client: Client, name: str, settings: AgentSettings) -> dict[str, Any]:
    """The settings with which a client starts this agent; one behind a URL is started as `accord bridge`."""
    words = own_command("accord", "bridge", name) if settings.url else settings.words
    env = {"env": dict(settings.env)} if settings.env else {}
    if client == "acpx":
        assigned = [f"{key}={value}" for key, value in settings.env.items()]
        return {KEYS[client]: {name: {"command": shlex.join([*(["env", *assigned] if assigned else []), *words])}}}
    entry: dict[str, Any] = {"command": words[0], "args": words[1:], **env}
    if client == "zed":
        mode = {"default_mode": settings.mode} if settings.mode else {}
        entry = {"type": "custom", **entry, **mode}
    return {KEYS[client]: {name: entry}}
