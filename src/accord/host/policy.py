"""Rules that answer permission requests, from a small TOML file.

    default = "ask"                     # what no rule says anything about; "ask" if left out

    [[rules]]
    answer = "allow"                    # allow, reject or ask
    kinds = ["read", "search"]          # of the tool

    [[rules]]
    answer = "reject"
    paths = ["**/.env", "/etc/**"]      # from the session's folder on, or absolute, or from ~

    [[rules]]
    answer = "allow"
    commands = ["npm test", "git diff*"]
    agents = ["Claude*"]

    [[rules]]
    answer = "ask"
    titles = ["*production*"]

The first rule that fits answers. A rule fits when each of its conditions does, and a condition when one of its patterns
does; `*` stands for anything, in paths for anything but `/`, and `**` there for any number of folders. A tool call with
several files or commands is allowed only where a rule allows all of them, and rejected or asked about already for one.
A condition on something that the tool call does not name does not fit.
"""

from __future__ import annotations

import fnmatch
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from accord.errors import ConfigurationError
from accord.host.commands import simple_commands, traces
from accord.host.question import PermissionQuestion
from accord.schema import v1

Answer = Literal["allow", "reject", "ask"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; a condition that is left out always fits."""

    answer: Answer
    kinds: Sequence[str] | None = None
    paths: Sequence[str] | None = None
    titles: Sequence[str] | None = None
    commands: Sequence[str] | None = None
    agents: Sequence[str] | None = None

    def fits(self, question: PermissionQuestion) -> bool:
        call = question.tool_call
        return (
            (self.kinds is None or call.kind in self.kinds)
            and (self.agents is None or _like(question.session.agent, self.agents))
            and (self.titles is None or _like(call.title, self.titles))
            and (self.commands is None or self._fits_commands(question, self.commands))
            and (self.paths is None or self._fits_paths(question, self.paths))
        )

    def _fits_commands(self, question: PermissionQuestion, patterns: Sequence[str]) -> bool:
        command = question.command
        if command is None:
            return False
        parts = simple_commands(command) if self.answer == "allow" else traces(command)
        return self._enough(_like(part, patterns) for part in parts or ())

    def _fits_paths(self, question: PermissionQuestion, patterns: Sequence[str]) -> bool:
        folder = Path(os.path.realpath(question.session.cwd))
        return self._enough(any(_is_at(path, pattern, folder) for pattern in patterns) for path in question.paths)

    def _enough(self, fitting: Iterable[bool]) -> bool:
        each = list(fitting)
        return bool(each) and (all(each) if self.answer == "allow" else any(each))


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in their order, and what holds where none fits.

    policy = accord.Policy.load("permissions.toml")
    client = accord.Client(permissions=accord.Permissions(ask_me, policy=policy))
    """

    rules: Sequence[Rule] = ()
    default: Answer = "ask"
    source: str = field(default="", compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a file; raises ConfigurationError with one line that says what is wrong with it."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"), source=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str, *, source: str = "policy") -> Policy:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"{source}: {error}") from error
        _only(document, {"default", "rules"}, source)
        default = _answer(document.get("default", "ask"), source)
        rules = document.get("rules", [])
        if not isinstance(rules, list):
            raise ConfigurationError(f"{source}: rules are written as [[rules]]")
        entries = enumerate(cast("list[Any]", rules), 1)
        return cls([_rule(entry, f"{source}: rule {number}") for number, entry in entries], default, source)

    def decide(self, question: PermissionQuestion) -> tuple[Answer, str]:
        """The answer, and which rule gave it."""
        for number, rule in enumerate(self.rules, 1):
            if rule.fits(question):
                return rule.answer, f"rule {number}"
        return self.default, "default"


_CONDITIONS = ("kinds", "paths", "titles", "commands", "agents")


def _rule(entry: Any, where: str) -> Rule:
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where}: not a table")
    table = cast("dict[str, Any]", entry)
    _only(table, {"answer", *_CONDITIONS}, where)
    if "answer" not in table:
        raise ConfigurationError(f"{where}: it has no answer")
    conditions = {name: _patterns(table[name], f"{where}: {name}") for name in _CONDITIONS if name in table}
    if unknown := set(conditions.get("kinds", ())) - set(get_args(v1.ToolKind)):
        raise ConfigurationError(f"{where}: there is no kind {min(unknown)!r}; {', '.join(get_args(v1.ToolKind))}")
    return Rule(_answer(table["answer"], where), **conditions)


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    if unknown := set(table) - known:
        raise ConfigurationError(f"{where}: there is no {min(unknown)!r}; {', '.join(sorted(known))}")


def _answer(value: Any, where: str) -> Answer:
    if value not in get_args(Answer):
        raise ConfigurationError(f"{where}: the answer is allow, reject or ask, not {value!r}")
    return cast("Answer", value)


def _patterns(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(it, str) for it in cast("list[Any]", value)):
        raise ConfigurationError(f"{where}: a list of texts")
    return cast("list[str]", value)


def _like(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def _is_at(path: Path, pattern: str, folder: Path) -> bool:
    if (absolute := Path(pattern).expanduser()).is_absolute():
        return _path_pattern(absolute.as_posix()).fullmatch(path.as_posix()) is not None
    if not path.is_relative_to(folder):
        return False
    return _path_pattern(pattern).fullmatch(path.relative_to(folder).as_posix()) is not None


@lru_cache(maxsize=1024)
def _path_pattern(pattern: str) -> re.Pattern[str]:
    """`*` and `?` within a name, `**` over any number of folders."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(piece) or re.escape(piece) for piece in pieces), re.DOTALL)
