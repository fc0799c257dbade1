"""`PermissionRule`: a decision without a question, and its source.

`accord permissions` and the chat's `/permissions` show the same list: answers that the user wants to keep, what they
trust, the level, the rules of a policy. The level is that of `--allow`; else the stricter one of the agent's settings
and of the folder's entry in `[allow]`; else that of `"*"` there; else `ask`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from accord import PermissionPolicy, RememberedAnswers
from accord.services import EVERYWHERE, Level, RememberedAnswer
from accord_tools.configuration.agent_settings import AgentSettings, Allow
from accord_tools.configuration.agents_file import EVERY_FOLDER, read_file, user_file
from accord_tools.configuration.trust import TrustedFile, TrustedFolder, trusted

LEVEL_MEANS: dict[Level, str] = {
    "none": "nothing; you are asked about reading, too",
    "ask": "reading in the session's folders",
    "edit": "reading and changing files in the session's folders",
    "auto": "everything, commands included",
}


class DefaultLevel(NamedTuple):
    """The level if the command line sets none."""

    level: Level
    source: str
    """The source, in words."""


def default_level(folder: str | Path, settings: AgentSettings | None) -> DefaultLevel:
    """The level for an agent in a folder. Raises ConfigurationError for a file that is invalid."""
    file = read_file(user_file(), "user")
    entry = None if file is None else file.level_in(Path(folder))
    found: list[DefaultLevel] = []
    if settings is not None and settings.allow is not None:
        found.append(DefaultLevel(settings.allow, "the agent's settings"))
    if file is not None and entry is not None and (entry[0] != EVERY_FOLDER or not found):
        found.append(DefaultLevel(entry[1], f"{file.path}: [allow] {entry[0]}"))
    order = get_args(Allow)
    return min(found, key=lambda it: order.index(it.level), default=DefaultLevel("ask", "the default"))


class PermissionRule(NamedTuple):
    """A decision without a question."""

    text: str
    """What is allowed or refused, in words."""
    about: str
    """Its scope, or how it is changed."""
    source: str
    """The source."""
    value: Any
    """What says it: a `RememberedAnswer`, a trusted file or folder, a level or a `PermissionPolicy`."""

    @property
    def id(self) -> str:
        """A short name by which it is revoked; empty for what the level or a policy says."""
        if not isinstance(self.value, msgspec.Struct):
            return ""
        return hashlib.sha256(repr(self.value).encode()).hexdigest()[:8]


def permission_rules(
    level: DefaultLevel, policy: PermissionPolicy | None, answers: RememberedAnswers, folder: Path | None = None
) -> Iterator[PermissionRule]:
    """All rules, those that can be revoked first; with a folder, only those that hold there."""
    for answer in answers:
        if folder is None or answer.folder in (str(folder), EVERYWHERE):
            yield PermissionRule(answer_text(answer), _holds(answer), "Kept answers", answer)
    for thing in trusted():
        place = Path(thing.path).parents[1] if isinstance(thing, TrustedFile) else thing.path
        if folder is None or folder.is_relative_to(place):
            yield PermissionRule(*_trusted_words(thing), "What you trust", thing)
    yield PermissionRule(
        LEVEL_MEANS[level.level], level.source, f"Level {level.level}: without a question", level.level
    )
    if policy is not None:
        for rule in policy.rules:
            yield PermissionRule(str(rule), "change it in its file", f"Rules of {policy.source}", policy)


def answer_text(answer: Any) -> str:
    """Describe the scope of a remembered answer."""
    return f"{'allow' if answer.allowed else 'reject'} {answer.kind}: {answer.what}"


def _holds(answer: RememberedAnswer) -> str:
    return f"{answer.agent}, {'in every folder' if answer.folder == EVERYWHERE else answer.folder}"


def _trusted_words(thing: TrustedFile | TrustedFolder) -> tuple[str, str]:
    if isinstance(thing, TrustedFile):
        return f"start agents of {thing.path}", "until it changes"
    return f"run git in {thing.path}", "with settings and skills"


def chosen_rules(rules: Iterable[PermissionRule], words: Sequence[str]) -> dict[str, list[PermissionRule]]:
    """The rules that each word means by the start of its id."""
    known = [rule for rule in rules if rule.id]
    return {word: [rule for rule in known if rule.id.startswith(word)] for word in words}
