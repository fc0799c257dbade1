"""A snapshot of the registry: agents that many people use, for a machine that has never fetched the registry's list.

It is for display, and identifies programs on PATH. Installations always come from the registry itself. The descriptions
are ours.
"""

from __future__ import annotations

from typing import NamedTuple


class WellKnownAgent(NamedTuple):
    """An agent of the registry."""

    id: str
    name: str
    description: str
    command: tuple[str, ...]
    """The command that starts it as an agent, if its program is on PATH."""


WELL_KNOWN = (
    WellKnownAgent("claude-acp", "Claude Agent", "Claude Code's agent, by Anthropic", ("claude-agent-acp",)),
    WellKnownAgent("codex-acp", "Codex", "OpenAI's coding agent", ("codex-acp",)),
    WellKnownAgent("gemini", "Gemini CLI", "Google's coding agent, open source", ("gemini", "--acp")),
    WellKnownAgent("opencode", "OpenCode", "open source, with models of many providers", ("opencode", "acp")),
    WellKnownAgent("goose", "goose", "open source and local, with many extensions", ("goose", "acp")),
    WellKnownAgent("qwen-code", "Qwen Code", "Alibaba's coding agent, open source", ("qwen", "--acp")),
    WellKnownAgent("github-copilot-cli", "Copilot CLI", "GitHub's coding agent", ("copilot", "--acp")),
    WellKnownAgent("cursor", "Cursor", "the agent of the editor Cursor", ("cursor-agent", "acp")),
    WellKnownAgent("kimi", "Kimi Code", "Moonshot's coding agent", ("kimi", "acp")),
    WellKnownAgent("mistral-vibe", "Mistral Vibe", "Mistral's coding agent, open source", ("vibe-acp",)),
    WellKnownAgent("auggie", "Auggie", "Augment's agent, for large code bases", ("auggie", "--acp")),
    WellKnownAgent("factory-droid", "Droid", "Factory's coding agent", ("droid", "exec", "--output-format", "acp")),
    WellKnownAgent("fast-agent", "fast-agent", "agents in Python, of many models", ("fast-agent-acp", "-x")),
)
