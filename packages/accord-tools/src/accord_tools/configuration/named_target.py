"""`named_target`: the agent that `accord.connect("gemini")` names, found in the same way as by `accord run -a gemini`.

It is the plug-in `accord` of the group `accord.agents`.
Nothing is fetched: an agent of the registry must be installed. Nothing is asked: a project's file must be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from accord import CommandTarget, ConfigurationError, Target
from accord.client.connect import url_target
from accord.transports.launch import Inherit
from accord_tools.configuration.agent_settings import AgentSettings, inherited, is_path, trusting, variables
from accord_tools.configuration.resolve_agent import UnknownAgent, resolve
from accord_tools.registry.installed_agents import PREFIX


def named_target(
    word: str,
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str | None] | None = None,
    inherit: Inherit = True,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    proxy: str | bool = True,
    on_stderr: Callable[[str], object] | None = None,
) -> Target | None:
    """Return the target for an agent's name; None for a command: a path or an unknown word.

    `cwd`, `env`, `token`, `headers` and `proxy` override the agent's settings. Raises ConfigurationError for a file
    that is invalid or not trusted, and for an agent of the registry that is not installed.
    """
    if is_path(word) and not word.startswith(PREFIX):
        return None
    try:
        settings = resolve(word, offline=True)
    except UnknownAgent:
        if word.startswith(PREFIX):
            raise
        return None
    if settings == AgentSettings(command=[word]):
        return None  # a program on PATH: another plug-in may know an agent of this name
    if settings.url is not None:
        return url_target(
            settings.url,
            token=token if token is not None else _token(settings),
            headers={**settings.headers, **(headers or {})},
            tls=trusting(settings.ca),
            proxy=settings.proxy if proxy is True and settings.proxy is not None else proxy,
        )
    there = cwd if cwd is not None else settings.cwd
    seen = inherited(settings) if inherit is True else inherit
    return CommandTarget(
        settings.words, cwd=there, env={**variables(settings), **(env or {})}, inherit=seen, on_stderr=on_stderr
    )


def _token(settings: AgentSettings) -> str | None:
    """The token in the agent's file: the first word of its first line that is not a comment."""
    if settings.token_file is None:
        return None
    try:
        lines = Path(settings.token_file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the token in {settings.token_file}: {error}") from None
    words = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    if len(words) != 1:
        raise ConfigurationError(f"{settings.token_file} must hold exactly one token, got {len(words)}")
    return words[0]
