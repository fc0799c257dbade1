"""The content of prompts: the keys of retries, the skills and commands that they may name, and suggested prompts."""

from __future__ import annotations

from typing import Any, cast

from accord_check.conversation import Exchange, Frame, Update, objects
from accord_check.passive.observer import Observer

CAPABILITY_OF_CONTENT = {"image": "image", "audio": "audio", "resource": "embeddedContext", "skill": "skill"}
"""The capability of a prompt that each type of content needs; the types that are not here need none."""


def prompt_capability(kind: str, version: int) -> str:
    """Return where an agent declares that it accepts this type of content in prompts."""
    start = "promptCapabilities" if version == 1 else "session.prompt"
    return f"{start}.{CAPABILITY_OF_CONTENT.get(kind, kind)}"


class Prompts(Observer):
    def begin(self) -> None:
        self._keyed: dict[tuple[str, str], Any] = {}
        """The content of each prompt that had a key, by its session and key."""
        self._skills: dict[str, set[str]] = {}
        """The names of the skills in each session's last list of commands."""

    def request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if self.conversation.version != 2 or exchange.method != "session/prompt" or session_id is None:
            return
        key, content = exchange.params.get("idempotencyKey"), exchange.params.get("prompt")
        self.judge("lint.prompt.key-sent", key is not None or "a prompt without an idempotencyKey", exchange)
        if isinstance(key, str):
            known = self._keyed.setdefault((session_id, key), content)
            verdict = known == content or f"the idempotencyKey {key[:60]!r} is that of another prompt"
            self.judge("lint.prompt.key-fresh", verdict, exchange)
        blocks = list(objects(content))
        if any(block.get("type") == "skill" for block in blocks):
            self.judge("lint.skill.sendable", self._misplaced_skill(blocks, session_id), exchange)

    def _misplaced_skill(self, blocks: list[dict[str, Any]], session_id: str) -> str | None:
        places = [place for place, block in enumerate(blocks) if block.get("type") == "skill"]
        if places != [0] and not self.declares("agent", "session.prompt.skill.inline"):
            return f"skills are the blocks {places}, and the agent did not declare session.prompt.skill.inline"
        names = [blocks[place].get("name") for place in places]
        unlisted = [name for name in names if name not in self._skills.get(session_id, set[str]())]
        return f"the last list of commands has no skill {unlisted[0]!r}" if unlisted else None

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        made = exchange.fields.get("sessionId")
        session_id = made if isinstance(made, str) else exchange.session_id
        if session_id is not None and exchange.by == "client":
            self._commands(exchange.fields.get("availableCommands"), session_id, frame)

    def update(self, update: Update) -> None:
        if update.kind == "available_commands_update":
            self._commands(update.fields.get("availableCommands"), update.session_id, update.frame)
        elif update.kind == "prompt_suggestions_update":
            wrong = next(filter(None, map(self._unsendable, objects(update.fields.get("suggestions")))), None)
            self.judge("lint.suggestions.sendable", wrong, update)

    def _commands(self, commands: Any, session_id: str, frame: Frame) -> None:
        if self.conversation.version != 2 or not isinstance(commands, list):
            return
        listed = list(objects(cast("list[Any]", commands)))
        names = [name for it in listed if isinstance(name := it.get("name"), str)]
        odd = [name for name in names if names.count(name) > 1 or name.split() != [name]]
        verdict = not odd or f"the command {odd[0][:60]!r} has the name of another, or a name with whitespace"
        self.judge("lint.commands.names-unique", verdict, frame)
        skills = {str(it.get("name")) for it in listed if it.get("type") == "skill"}
        self._skills[session_id] = skills
        if not skills:
            return
        for side, path, name in (
            ("client", "session.commands.skill", "capabilities.agent-omitted-is-unsupported"),
            ("agent", "session.prompt.skill", "lint.skill.offered-and-taken"),
        ):
            declared = self.declares("client" if side == "client" else "agent", path)
            self.judge(name, declared or f"a skill was listed, but the {side} did not declare {path}", frame)

    def _unsendable(self, suggestion: dict[str, Any]) -> str | None:
        blocks = list(objects(suggestion.get("prompt")))
        if all(block.get("type") == "text" and not str(block.get("text", "")).strip() for block in blocks):
            return "a suggested prompt has no content but blank text"
        for kind in [str(block.get("type")) for block in blocks]:
            if kind in ("text", "resource_link"):
                continue
            needed = prompt_capability(kind, self.conversation.version)
            shown = f"session.promptSuggestions.{CAPABILITY_OF_CONTENT.get(kind, kind)}"
            if not self.declares("agent", needed) or not self.declares("client", shown):
                return f"a suggested prompt has a block of type {kind[:60]}, which not both sides declared"
        return None
