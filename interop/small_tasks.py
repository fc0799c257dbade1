"""Ten small tasks, and the questions that a user is asked for each, at each level of permission.

A task is a list of acts: read this file, run that command. The model is made of rules: it turns each act into a call of
the tool that the agent has for it. So every agent does the same work, and the numbers can be compared.

python -m interop.small_tasks [AGENT ...]   print the table of these real agents, by default of three
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import accord
from accord import Files, Terminals
from accord.services import Guarded, Level, UsePermissions
from interop.model.replies import Asked, Json, Piece, ToolCall, words
from interop.model.server import ModelServer
from interop.real_agents import CLAUDE, GEMINI, OPENCODE, RealAgent, command, environment, repository

LEVELS: tuple[Level, ...] = ("ask", "edit", "auto")
MARK = "Do the small task."
"""What a prompt says, so that the model knows it from what agents ask beside, such as a title."""
TASK_SECONDS = 120.0
AGENTS = (CLAUDE, OPENCODE, GEMINI)
LEFT_OUT: Mapping[str, Collection[str]] = {OPENCODE.name: ("delegate",)}
"""Tasks that an agent does not end: opencode asks nobody about an edit of its subagent, and waits
(issue 48232 of anomalyco/opencode)."""

TOOLS: Mapping[str, Collection[str]] = {
    "read": ("read_file", "Read", "read"),
    "create": ("write_file", "Write", "write"),
    "edit": ("edit_file", "Edit", "edit", "replace"),
    "edits": ("edit_files",),
    "run": ("run_command", "Bash", "bash", "run_shell_command"),
    "search": ("search_files", "Grep", "grep", "grep_search", "search_file_content"),
    "delegate": ("delegate", "Agent", "Task", "task"),
}
"""The tools that do an act, by the names that agents give them."""

ARGUMENTS: Mapping[str, Collection[str]] = {
    "path": ("path", "file_path", "filePath", "absolute_path"),
    "text": ("content",),
    "old": ("old", "old_string", "oldString"),
    "new": ("new", "new_string", "newString"),
    "edits": ("edits",),
    "line": ("command",),
    "pattern": ("pattern",),
    "about": ("title", "description", "instruction"),
    "task": ("task", "prompt"),
    "kind": ("subagent_type",),
}
"""The arguments of these tools, by the names that agents give them."""


@dataclass(frozen=True)
class Act:
    """Something that an agent does, in the words of `TOOLS` and `ARGUMENTS`."""

    kind: str
    values: Mapping[str, Any]


def act(kind: str, **values: Any) -> Act:
    return Act(kind, {"about": "A small task", "kind": "general", **values})


@dataclass(frozen=True)
class SmallTask:
    """A task: what is done in a folder, and how to see that it was done."""

    name: str
    acts: Callable[[Path], Sequence[Act]]
    is_done: Callable[[Path], bool] = lambda _: True
    at_most: Mapping[Level, int] = field(default_factory=dict[Level, int])
    """The most questions at a level; none where nothing is said."""


def says(name: str, *parts: str) -> Callable[[Path], bool]:
    """Whether a file has these parts."""
    return lambda folder: (folder / name).is_file() and all(it in (folder / name).read_text() for it in parts)


def reading(folder: Path, name: str = "hello.txt") -> Act:
    return act("read", path=str(folder / name))


def editing(folder: Path, old: str = "world", new: str = "moon") -> Act:
    return act("edit", path=str(folder / "hello.txt"), old=old, new=new)


TASKS = (
    SmallTask("read", lambda it: [reading(it)]),
    SmallTask("edit", lambda it: [reading(it), editing(it)], says("hello.txt", "moon"), {"ask": 1}),
    SmallTask(
        "read, edit, run",
        lambda it: [reading(it), editing(it), act("run", line=f"touch {it / 'ran.txt'}")],
        says("ran.txt"),
        {"ask": 2, "edit": 1},
    ),
    SmallTask(
        "create", lambda it: [act("create", path=str(it / "new.txt"), text="new\n")], says("new.txt", "new"), {"ask": 1}
    ),
    SmallTask(
        "a failing command",
        lambda it: [act("run", line=f"touch {it / 'ran.txt'} && false")],
        says("ran.txt"),
        {"ask": 1, "edit": 1},
    ),
    SmallTask(
        "several edits",
        lambda it: [
            reading(it),
            act(
                "edits",
                edits=[
                    {"path": str(it / "hello.txt"), "old": "hello", "new": "good night"},
                    {"path": str(it / "hello.txt"), "old": "world", "new": "moon"},
                ],
            ),
        ],
        says("hello.txt", "good night", "moon"),
        {"ask": 2},
    ),
    SmallTask(
        "rename",
        lambda it: [act("run", line=f"mv {it / 'hello.txt'} {it / 'hi.txt'}")],
        says("hi.txt"),
        {"ask": 1, "edit": 1},
    ),
    SmallTask("search", lambda it: [act("search", pattern="wor.d"), reading(it)]),
    SmallTask(
        "delegate",
        lambda it: [act("delegate", task=MARK), reading(it), editing(it), act("say")],
        says("hello.txt", "moon"),
        {"ask": 1},
    ),
    SmallTask("a file outside", lambda it: [reading(it.parent.parent, "outside.txt")], at_most={"ask": 1, "edit": 1}),
)


class ActingModel:
    """The model: does the acts of a task, one for each request."""

    def __init__(self) -> None:
        self.acts: deque[Act] = deque()
        self.is_missing = False
        """Whether the agent has no tool for an act."""

    def begin(self, acts: Sequence[Act]) -> None:
        """Do these from the next request on."""
        self.acts, self.is_missing = deque(acts), False

    def __call__(self, asked: Asked) -> Iterator[Piece]:
        if MARK in asked.text and asked.tools and self.acts and (call := self._call(asked, self.acts.popleft())):
            yield call
        else:
            yield from words("That is all.")

    def _call(self, asked: Asked, wanted: Act) -> ToolCall | None:
        if wanted.kind == "say":
            return None
        name = next((it for it in TOOLS[wanted.kind] if it in asked.tools), None)
        if name is None and wanted.kind == "edits":  # one by one then
            self.acts.extendleft(act("edit", **edit) for edit in reversed(wanted.values["edits"]))
            return self._call(asked, self.acts.popleft())
        if name is None:
            self.is_missing = True
            self.acts.clear()
            return None
        return ToolCall(name, arguments(asked.tools[name].get("properties", {}), wanted.values))


def arguments(properties: Json, values: Mapping[str, Any]) -> Json:
    """The values by the names that a tool has for them."""
    return {name: value for key, value in values.items() for name in ARGUMENTS[key] if name in properties}


@dataclass(frozen=True)
class TaskOutcome:
    """What came of a task."""

    asked: Sequence[str]
    """The titles of the questions."""
    is_done: bool
    is_offered: bool


Connect = Callable[[accord.Client], AbstractAsyncContextManager[accord.RemoteAgent]]


async def questions_at(
    level: Level, model: ModelServer, folder: Path, connect: Connect, agent: RealAgent | None = None
) -> dict[str, TaskOutcome]:
    """Do all tasks at this level in one session, each in a folder of its own; the user allows everything."""
    asked: list[str] = []
    acting = model.reply = ActingModel()

    def answer(question: accord.PermissionQuestion) -> bool:
        asked.append(question.title)
        return True

    consent = UsePermissions(answer, level=level)
    files = Guarded(Files(), consent) if agent is None or agent.files_lent else False
    client = accord.Client("accord-interop", files=files, terminals=Guarded(Terminals(), consent), permissions=consent)
    (folder.parent / "outside.txt").write_text("outside\n")
    outcomes: dict[str, TaskOutcome] = {}
    async with connect(client) as remote:
        session = await remote.new_session(folder)
        for task in TASKS:
            if agent is not None and task.name in LEFT_OUT.get(agent.name, ()):
                outcomes[task.name] = TaskOutcome([], is_done=False, is_offered=False)
                continue
            place = folder / task.name.replace(", ", "-").replace(" ", "-")
            place.mkdir()
            (place / "hello.txt").write_text("hello\nworld\n")
            asked.clear()
            acting.begin(task.acts(place))
            await session.prompt(MARK)
            outcomes[task.name] = TaskOutcome(list(asked), task.is_done(place), not acting.is_missing)
    return outcomes


def table(found: Mapping[str, Mapping[Level, Mapping[str, TaskOutcome]]]) -> str:
    """The questions of each task as rows, each agent's at the levels ask, edit and auto as a column."""
    names = list(found)
    rows = [["questions at ask / edit / auto", *names], ["---"] * (len(names) + 1)]
    rows += [
        [task.name, *(" / ".join(_cell(found[name][it][task.name]) for it in LEVELS) for name in names)]
        for task in TASKS
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(outcome: TaskOutcome) -> str:
    return "-" if not outcome.is_offered else f"{len(outcome.asked)}{'' if outcome.is_done else '!'}"


async def questions_of(agent: RealAgent, folder: Path) -> dict[Level, dict[str, TaskOutcome]]:
    """Have a real agent do all tasks at all levels."""
    found: dict[Level, dict[str, TaskOutcome]] = {}
    for level in LEVELS:
        work = repository(folder / level / "work")
        with ModelServer() as model:
            connect = partial(_connected, agent, model.url, work)
            found[level] = await questions_at(level, model, work, connect, agent)
    return found


@asynccontextmanager
async def _connected(
    agent: RealAgent, url: str, work: Path, client: accord.Client
) -> AsyncGenerator[accord.RemoteAgent]:
    home = work.parent / "home"
    home.mkdir()
    env = environment(agent, url, home)
    program = command(agent, home)
    async with accord.connect(program, client, cwd=work, env=env, inherit=False, timeout=TASK_SECONDS) as remote:
        if agent.login:
            await remote.login(agent.login)
        yield remote


async def main(names: Sequence[str]) -> None:
    import tempfile

    chosen = [it for it in AGENTS if not names or it.name in names]
    with tempfile.TemporaryDirectory() as folder:
        found = {it.name: await questions_of(it, Path(folder) / it.name) for it in chosen}
    print(table(found))
    for name, levels in found.items():
        for level, outcomes in levels.items():
            for task, outcome in outcomes.items():
                print(name, level, task, *map(repr, outcome.asked), sep="  ")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
