"""Rules that answer permission requests, from a small TOML file.

    default = "ask"                     # if no rule fits; "ask" if left out

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

The first rule that fits answers. A rule fits if all of its conditions fit, and a condition fits if one of its patterns
does. `*` stands for any text; in paths it stands for any text without `/`, and `**` for any number of folders. If a
tool call names several files or commands, a rule that allows must fit all of them; a rule that rejects or asks need fit
only one. A condition on something that the tool call does not name does not fit.

`npm test && rm -rf /` begins like `npm test`. So a shell line is split first, and a rule that allows must allow every
simple command. A line with syntax that cannot be judged by reading (substitutions, redirections, groups, line feeds)
has no simple commands that could be allowed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, cast, get_args

from accord.errors import ConfigurationError
from accord.project.confined import Roots
from accord.schema import v1
from accord.services.permission_question import PermissionQuestion, must_be_judgeable
from accord.session import ToolCallState

SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "fish"})
"""Programs that run the line after their option `-c`."""

_RUN = re.compile(r"^(?:(?:run|execute)\b:?\s*)?[`$\s]*", re.IGNORECASE)
"""What stands before a command that a text only repeats."""
_OPAQUE = re.compile(r"[`$<>(){}\n\r\\]")
_SEPARATORS = {"&&", "||", ";", "|", "&", "|&", ";;"}

# A shell's tokens in a line without opaque characters. The quantifiers are possessive, so that matching the agent's
# line takes linear time.
_TOKEN = re.compile(r"""(?P<word>(?:[^ \t'";&|]++|'[^']*+'|"[^"]*+")++)|[;&|]++|[ \t]++""")
_QUOTED = re.compile(r"""'([^']*+)'|"([^"]*+)\"""")


def simple_commands(command: str | Sequence[str]) -> list[str] | None:
    """Return the simple commands, with single spaces between words; None for a line that cannot be judged.

    >>> simple_commands("npm  test && git 'push'")
    ['npm test', 'git push']
    >>> simple_commands("echo $(rm -rf /)") is None
    True
    """
    if not isinstance(command, str):
        return [" ".join(command)]
    if _OPAQUE.search(command):
        return None
    words = _shell_words_of(command)
    if words is None:
        return None
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            parts.append([])
        else:
            parts[-1].append(word)
    return [" ".join(part) for part in parts if part] or None


def _shell_words_of(line: str) -> list[str] | None:
    """Return the words of a line without quotes, and its separators; None if a quote is not closed."""
    words: list[str] = []
    end = 0
    while end < len(line):
        token = _TOKEN.match(line, end)
        if token is None:
            return None
        end = token.end()
        text = token.group()
        if token["word"] is not None:
            words.append(_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", text))
        elif text[0] not in " \t":
            words.append(text)
    return words


def traces(command: str | Sequence[str]) -> list[str]:
    """Return every part of a command that could be a command, for rules that reject; also those passed to another
    shell.

    >>> traces(["sh", "-c", "rm a.txt"])
    ['sh -c rm a.txt', 'rm a.txt']
    """
    found: list[str] = []
    waiting: list[str | Sequence[str]] = [command]
    while waiting:
        part = waiting.pop()
        line = part if isinstance(part, str) else " ".join(part)
        found += [line, *(simple_commands(part) or [])]
        found += [part.strip() for part in re.split(r"[;&|`$(){}\n\r]+", line)]
        waiting += _lines_for_shells(part)
    return list(dict.fromkeys(" ".join(part.split()) for part in found if part.strip()))


def typed_command(command: str | Sequence[str]) -> str:
    """Return the line that a person would type, which a shell reads in the end: LINE of `sh -c LINE`.

    >>> typed_command(["sh", "-c", "npm test"]), typed_command(["echo", "a b"])
    ('npm test', "echo 'a b'")
    """
    if isinstance(command, str):
        try:
            words: Sequence[str] = shell_words(command)
        except ValueError:
            return command
    else:
        words = command
    if is_shell(words):
        return typed_command(words[2])
    return command if isinstance(command, str) else shlex.join(command)


def repeats_command(text: str, line: str) -> bool:
    """Whether a text only repeats a command, or its beginning: one that says more must be shown.

    >>> [repeats_command(it, "npm test") for it in ("`npm test`", "Run npm te…", "npm test && rm -rf .")]
    [True, True, False]
    """
    plain = text.strip(" `\n")
    core = _RUN.sub("", plain)
    cut = core.removesuffix("…").removesuffix("...").rstrip()
    return line in (plain, core) or (cut != core and line.startswith(cut))


def is_shell(words: Sequence[str]) -> bool:
    """Whether these words only hand a line to a shell."""
    return len(words) == 3 and words[1] in ("-c", "-lc") and PurePosixPath(words[0]).name in SHELLS


def _lines_for_shells(command: str | Sequence[str]) -> list[str]:
    """The lines that a command hands to shells: LINE of `sh -c LINE`. Each is shorter than the command."""
    try:
        words = shell_words(command) if isinstance(command, str) else list(command)
    except ValueError:  # a quote is not closed: a shell would not run it
        return []
    found: list[str] = []
    for at, word in enumerate(words):
        if PurePosixPath(word).name not in SHELLS:
            continue
        after = at + 1
        while after + 1 < len(words) and words[after].startswith("-"):
            if not words[after].startswith("--") and "c" in words[after]:
                found.append(words[after + 1])
                break
            after += 1
    return found


def shell_words(line: str) -> list[str]:
    """The words of a line as a shell splits it, its operators among them; raises ValueError for an open quote."""
    split = shlex.shlex(line, posix=True, punctuation_chars=True)
    split.whitespace_split, split.commenters = True, ""
    return list(split)


Answer = Literal["allow", "reject", "ask"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a policy. A condition that is None always fits."""

    answer: Answer
    kinds: Sequence[str] | None = None
    paths: Sequence[str] | None = None
    titles: Sequence[str] | None = None
    commands: Sequence[str] | None = None
    agents: Sequence[str] | None = None

    def __str__(self) -> str:
        """The rule in a line: `reject paths **/.env`."""
        named = {name: patterns for name in _CONDITIONS if (patterns := getattr(self, name)) is not None}
        conditions = [f"{name} {', '.join(patterns)}" for name, patterns in named.items()]
        return f"{self.answer} {' and '.join(conditions) or 'everything else'}"

    def fits(self, case: Case) -> bool:
        """Whether all conditions of the rule fit."""
        call = case.question.tool_call
        return (
            (self.kinds is None or call.kind in self.kinds)
            and (self.agents is None or _like(case.question.session.agent, self.agents))
            and (self.titles is None or _like(call.title, self.titles))
            and (self.commands is None or self._fits_commands(case, self.commands))
            and (self.paths is None or self._fits_paths(case, self.paths))
        )

    def _fits_commands(self, case: Case, patterns: Sequence[str]) -> bool:
        parts = case.simple_commands if self.answer == "allow" else case.traces
        return self._enough(_like(part, patterns) for part in parts)

    def _fits_paths(self, case: Case, patterns: Sequence[str]) -> bool:
        places = [_place(pattern) for pattern in patterns]
        return self._enough(any(place.has(path) for place in places) for path in case.paths)

    def _enough(self, fitting: Iterable[bool]) -> bool:
        each = list(fitting)
        return bool(each) and (all(each) if self.answer == "allow" else any(each))


class Case:
    """A question as rules see it; values that several rules need are computed once."""

    def __init__(self, question: PermissionQuestion) -> None:
        self.question = question

    @cached_property
    def simple_commands(self) -> Sequence[str]:
        """Return all simple commands; empty if the command cannot be judged."""
        command = self.question.command
        return () if command is None else simple_commands(command) or ()

    @cached_property
    def traces(self) -> Sequence[str]:
        """Return everything that the command could run."""
        command = self.question.command
        return () if command is None else traces(command)

    @cached_property
    def paths(self) -> Sequence[tuple[str, str | None]]:
        """Return each file: its absolute path, and its path relative to the session's folder if it is inside."""
        folder = Path(os.path.realpath(self.question.session.cwd))
        return [
            (path.as_posix(), path.relative_to(folder).as_posix() if path.is_relative_to(folder) else None)
            for path in self.question.paths
        ]


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """Ordered rules, and a default for questions that no rule fits.

    policy = accord.PermissionPolicy.load("permissions.toml")
    client = accord.Client(permissions=accord.Permissions(ask_me, policy=policy))
    """

    rules: Sequence[Rule] = ()
    """The rules; the first one that fits a question answers it."""
    default: Answer = "ask"
    """The answer to questions that no rule fits."""
    source: str = field(default="", compare=False)
    """The file that the policy was read from; empty if it was not read from a file."""

    @classmethod
    def load(cls, path: str | Path) -> PermissionPolicy:
        """Read a policy from a TOML file; raises ConfigurationError, which explains the problem in one line."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"), source=str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str, *, source: str = "policy") -> PermissionPolicy:
        """Read a policy from TOML text; `source` is its name in errors."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"{source}: {error}") from error
        _only(document, {"default", "rules"}, source)
        default = _answer(document.get("default", "ask"), source)
        rules = document.get("rules", [])
        if not isinstance(rules, list):
            raise ConfigurationError(f"{source}: rules must be an array of tables, written as [[rules]]")
        entries = enumerate(cast("list[Any]", rules), 1)
        return cls([_rule(entry, f"{source}: rule {number}") for number, entry in entries], default, source)

    def decide(self, question: PermissionQuestion) -> tuple[Answer, str]:
        """Return the answer, and the rule that gave it (`rule 1`, or `default`)."""
        case = Case(question)
        for number, rule in enumerate(self.rules, 1):
            if rule.fits(case):
                return rule.answer, f"rule {number}"
        return self.default, "default"

    def judge(self, tool_call: ToolCallState, *, cwd: str | Path, agent: str = "") -> tuple[Answer, str]:
        """Return the answer for a tool call without a request to a client, and the rule that gave it.

            policy.judge(ToolCallState(id, kind="execute", raw_input={"command": "git push"}), cwd=folder)

        It is for proxies, and for services of your own. `cwd` is the folder of the session, `agent` the agent's name.
        Raises RequestError for a tool call that is too large to judge.
        """
        must_be_judgeable(tool_call, ())
        return self.decide(PermissionQuestion(PolicyProbe(cwd, agent), tool_call, ()))


_CONDITIONS = ("kinds", "paths", "titles", "commands", "agents")


def _rule(entry: Any, where: str) -> Rule:
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where}: must be a table")
    table = cast("dict[str, Any]", entry)
    _only(table, {"answer", *_CONDITIONS}, where)
    if "answer" not in table:
        raise ConfigurationError(f"{where}: answer is missing; use allow, reject or ask")
    conditions = {name: _patterns(table[name], f"{where}: {name}") for name in _CONDITIONS if name in table}
    if unknown := set(conditions.get("kinds", ())) - set(get_args(v1.ToolKind)):
        raise ConfigurationError(f"{where}: unknown kind {min(unknown)!r}; use {', '.join(get_args(v1.ToolKind))}")
    return Rule(_answer(table["answer"], where), **conditions)


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    if unknown := set(table) - known:
        raise ConfigurationError(f"{where}: unknown key {min(unknown)!r}; use {', '.join(sorted(known))}")


def _answer(value: Any, where: str) -> Answer:
    if value not in get_args(Answer):
        raise ConfigurationError(f"{where}: answer must be allow, reject or ask, got {value!r}")
    return cast("Answer", value)


def _patterns(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(it, str) for it in cast("list[Any]", value)):
        raise ConfigurationError(f"{where}: must be a list of strings")
    return cast("list[str]", value)


def _like(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


class _Place(NamedTuple):
    """A pattern for absolute paths, or for paths relative to the session's folder."""

    absolute: bool
    pattern: re.Pattern[str]

    def has(self, path: tuple[str, str | None]) -> bool:
        text = path[0] if self.absolute else path[1]
        return text is not None and self.pattern.fullmatch(text) is not None


def _place(pattern: str) -> _Place:
    if (absolute := Path(pattern).expanduser()).is_absolute():
        return _Place(True, path_pattern(absolute.as_posix()))
    return _Place(False, path_pattern(pattern))


@lru_cache(maxsize=1024)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern: `*` and `?` stay within a name, `**` spans any number of folders.

    The first place where the text after a star fits is always good enough, so later places are not tried (`(?>...)`).
    Thus an agent's path cannot make several stars cost more than one.
    """
    tokens: list[str] = []
    for token in filter(None, re.split(r"(\*\*/|\*\*|\*)", pattern.removeprefix("./"))):
        if token in _OVER_FOLDERS and tokens and tokens[-1] in _OVER_FOLDERS:
            tokens[-1] = min(token, tokens[-1])  # `**` next to `**/` still stands for any text
        else:
            tokens.append(token)
    parts = _split_at_stars(tokens, _OVER_FOLDERS)
    written = [_OVER_FOLDERS.get(star, "") + _within_names(rest) for star, rest in parts]
    # Only a `**/` in the middle of a name (`a**/b`) may fail at a later place although it fits at an earlier one.
    certain = [
        after != "**/" or not "".join(rest).rstrip("/") or rest[-1].endswith("/")
        for (_, rest), (after, _) in pairwise(parts)
    ]
    return re.compile(_chain(written, certain), re.DOTALL)


_OVER_FOLDERS = {"**/": "(?:.*?/)??", "**": ".*?"}
_WITHIN_NAMES = {"*": "[^/]*?"}


def _split_at_stars(tokens: Sequence[str], stars: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Return each star and the parts of the pattern after it; the first entry has no star."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for token in tokens:
        if token in stars:
            parts.append((token, []))
        else:
            parts[-1][1].append(token)
    return parts


def _within_names(tokens: Sequence[str]) -> str:
    written = [_WITHIN_NAMES.get(star, "") + _literal(rest) for star, rest in _split_at_stars(tokens, _WITHIN_NAMES)]
    return _chain(written, [True] * len(written))


def _chain(parts: Sequence[str], certain: Sequence[bool]) -> str:
    """Return one expression; a part that is certain is tried only at the first place where it fits."""
    *before, last = parts
    return "".join(f"(?>{part})" if sure else part for part, sure in zip(before, certain, strict=False)) + last


def _literal(tokens: Sequence[str]) -> str:
    return "".join("[^/]" if character == "?" else re.escape(character) for token in tokens for character in token)


class PolicyProbe:
    """The facts about a session that rules use: its folder, and the agent's name."""

    def __init__(self, cwd: str | Path, agent: str) -> None:
        self.id = v1.SessionId("")
        self.agent = agent
        self.program = ""
        self.cwd = Path(cwd)

    @property
    def roots(self) -> Roots:
        return Roots([self.cwd])

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:  # noqa: ARG002
        return None

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        return ToolCallState(said.tool_call_id).updated(said.as_update())
