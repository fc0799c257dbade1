"""Conventions of claude-agent-acp 0.101 and codex-acp 2.6 for clients that declare `_meta.jetbrains.air`.

JetBrains' client introduced these. Both sides declare their features in a list of words: the client in the `_meta` of
its capabilities, the agent in that of its answer to `initialize`. An agent that finds no such object in the client's
capabilities follows the specification. One that finds it sends command titles, and subagents in an older form, whatever
the list contains: so declare `CommandTitles` and `NativeSubagents` with any of the others.

| extension | word in the list | what goes over the wire |
|---|---|---|
| `AsyncTasks` | `asyncTasks` | updates `async_task_spawned` and others, `_session/async_task/stop` |
| `SessionFailures` | `sessionFailure` | `sessionFailure` in a session's information or state, or in a prompt's answer |
| `NativeSubagents` | `nativeSubagentSessions` | updates `subagent_spawned` and `subagent_state_update` |
| `BackgroundSubagents` | `backgroundSubagents` | a turn ends while its subagents continue; claude-agent-acp only |
| `DiffPatches` | `diffPatch` | a git patch in the place of a file's whole text |
| `CommandTitles` | none | `commandTitle` of a tool call: what the command is for; claude-agent-acp only |
| `Goals` | none: `goal` beside the list | `goal` in a session's information, `_session/goal` |
| `SessionIndex` | `sessionIndex` | richer rows of `session/list`, `_session/batch_get` and other requests |

All were tested with a scripted model and both agents; subagents only with claude-agent-acp. In version 2 the kinds of
updates begin with an underscore, and patches and terminals are the protocol's own: codex-acp declares no `diffPatch`
there. claude-agent-acp declares only failures, patches and native subagents there, and ends a turn with an error when a
subagent starts: "The ACP v2 surface does not translate subagent_spawned session updates yet".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from accord.errors import CapabilityMissing
from accord.schema import shared_updates as updates
from accord.schema.base import Json, Model, Notification, Request, Shape, Tolerant, Unknown, ValidItems, tag_of
from accord.schema.extension import Extension, MetaMember, OfferT, merged_meta
from accord.schema.shared_updates import Notice, Update

AIR = ("jetbrains", "air")
"""The path of these conventions in `_meta`."""
_AIR_OBJECT = MetaMember(dict[str, Any], *AIR)


class AirExtension(Extension[OfferT]):
    """An extension that is declared by a word in the list `_meta.jetbrains.air.capabilities`."""

    is_in_answer = True
    word: ClassVar[str | None] = None
    """The word; None for a feature of every client that declares the object itself."""

    @classmethod
    def declaration(cls, offer: OfferT) -> dict[str, Json]:  # noqa: ARG003
        """The word in the list."""
        return _AIR_OBJECT.meta({"version": 1, "capabilities": [] if cls.word is None else [cls.word]})

    @classmethod
    def declared_in(cls, meta: Mapping[str, Json]) -> Any:
        """An empty object if the list has the word."""
        said = _AIR_OBJECT.of(dict(meta))
        listed = None if said is None else said.get("capabilities")
        return (
            {} if said is not None and (cls.word is None or (isinstance(listed, list) and cls.word in listed)) else None
        )

    @classmethod
    def read(cls, update: object) -> Any:
        """An update of the convention. In version 2 its kind begins with an underscore."""
        if not isinstance(update, Unknown):
            return None
        if update.tag.startswith("_"):
            kind = update.tag[1:]
            update = Unknown(kind, {**update.raw, "sessionUpdate": kind})
        return super().read(update)

    @classmethod
    def place(cls) -> str:
        """The list, and the word in it."""
        return f"{cls.word!r} in _meta.jetbrains.air.capabilities"


# Work in the background


class AsyncTaskSpawned(Model, tag_field="sessionUpdate", tag="async_task_spawned"):
    """Work that an agent began in the background, such as a command."""

    async_task_id: str
    name: str
    task_type: Tolerant[str] = ""
    description: Tolerant[str] = ""
    show_in_transcript: Tolerant[bool] = False
    can_stop: Tolerant[bool] = False
    output_file_path: Tolerant[str | None] = None
    tool_call_id: Tolerant[str | None] = None


class AsyncTaskUsage(Shape):
    """The usage of a task."""

    total_tokens: int = 0
    tool_uses: int = 0
    duration_ms: int = 0


class AsyncTaskProgress(Model, tag_field="sessionUpdate", tag="async_task_progress"):
    """The progress of such work."""

    async_task_id: str
    description: Tolerant[str | None] = None
    summary: Tolerant[str | None] = None
    last_tool_name: Tolerant[str | None] = None
    usage: Tolerant[AsyncTaskUsage | None] = None
    output_file_path: Tolerant[str | None] = None
    tool_call_id: Tolerant[str | None] = None


class AsyncTaskStateUpdate(Model, tag_field="sessionUpdate", tag="async_task_state_update"):
    """The state of such work: running, paused, or its end: `completed`, `failed` or `stopped`."""

    async_task_id: str
    state: str
    summary: Tolerant[str | None] = None
    output_file_path: Tolerant[str | None] = None
    tool_call_id: Tolerant[str | None] = None


class AsyncTaskStopped(Model):
    """Whether the task is being stopped."""

    stopped: bool


class StopAsyncTask(Request[AsyncTaskStopped], method="_session/async_task/stop"):
    """Stop a task of a session."""

    session_id: str
    async_task_id: str


@dataclass(frozen=True)
class AsyncTask:
    """An agent's background work, in its present state."""

    id: str
    """Its id, which the agent chose."""
    name: str
    """The command, or the name of the work."""
    type: str = ""
    """Its type: `shell`, `monitor` or another word of the agent."""
    state: str = "running"
    """`running`, `paused`, `completed`, `failed` or `stopped`."""
    description: str = ""
    """Its present activity, in the agent's words."""
    summary: str | None = None
    """The result so far."""
    can_stop: bool = False
    """Whether `AsyncTasks.stop` may stop it."""
    output_file_path: str | None = None
    """The file with its output, on the agent's machine."""
    tool_call_id: str | None = None
    """The tool call that began it."""
    usage: AsyncTaskUsage | None = None
    """Its usage."""

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in ("running", "paused")


MOST_TASKS = 256
"""Tasks of one session that are kept, the newest."""


class AsyncTasks(AirExtension[dict[str, Any]], name="asyncTasks"):
    """Background work of agents, by the ids of the tasks; clients may stop it."""

    label = "Background"
    word = "asyncTasks"
    messages = (StopAsyncTask,)
    updates = (AsyncTaskSpawned, AsyncTaskProgress, AsyncTaskStateUpdate)

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.tasks: dict[str, AsyncTask] = {}
        """The tasks in their present state, including ended ones."""

    def fold(self, update: object) -> None:
        """Fold a beginning, a report or an end; ignore updates of tasks that were not announced."""
        said = self.read(update)
        if isinstance(said, AsyncTaskSpawned):
            self.tasks[said.async_task_id] = AsyncTask(
                said.async_task_id,
                said.name,
                said.task_type,
                description=said.description,
                can_stop=said.can_stop,
                output_file_path=said.output_file_path,
                tool_call_id=said.tool_call_id,
            )
            if len(self.tasks) > MOST_TASKS:
                del self.tasks[next(iter(self.tasks))]
        elif said is not None and (task := self.tasks.get(said.async_task_id)) is not None:
            names = ("state", "description", "summary", "output_file_path", "tool_call_id", "usage")
            changes = {name: value for name in names if (value := getattr(said, name, None)) is not None}
            self.tasks[task.id] = replace(task, **changes)

    async def stop(self, task_id: str) -> bool:
        """Stop a task; False if the agent cannot, or the task has ended."""
        return (await self.request(StopAsyncTask(self.session_id, task_id))).stopped

    @classmethod
    def notice(cls, update: object) -> Notice | None:
        """The beginning and the end of a task."""
        match cls.read(update):
            case AsyncTaskSpawned(name=name):
                return updates.Notice("info", f"In the background: {name or 'a task'}")
            case AsyncTaskStateUpdate(state="completed" | "failed" | "stopped" as state, summary=summary):
                return updates.Notice("error" if state == "failed" else "info", f"Background task {state}", summary)
            case _:
                return None

    @property
    def summary(self) -> str | None:
        """The names of the tasks that run."""
        return ", ".join(it.name for it in self.tasks.values() if it.is_open) or None


# Failures


class SessionFailure(Shape):
    """Why a session cannot continue, or continues only after another attempt."""

    id: str
    """The incident; later reports of it have a higher `revision`."""
    title: str
    """A description of the failure for the user."""
    revision: Tolerant[int] = 1
    category: Tolerant[str] = "unknown"
    """`connection`, `access`, `limit`, `request`, `service` or `unknown`."""
    severity: Tolerant[str] = "error"
    """`warning` while the agent retries by itself, or `error`."""
    details: Tolerant[str | None] = None
    reason: Tolerant[str | None] = None
    """A finer word for the category, for programs."""
    actions: Tolerant[list[str]] = msgspec.field(default_factory=list[str])
    """What the user may do: `retry`, `login` or `new_session`."""


_ACTIONS = {"retry": "try again", "login": "log in", "new_session": "begin a new session"}


class SessionFailures(AirExtension[dict[str, Any]], name="sessionFailure"):
    """Failures of a session with a category, by their ids: limits, logins, lost connections.

    `SessionFailures.failure.of(outcome)` is the failure that ended a turn.
    """

    word = "sessionFailure"
    failure = MetaMember(SessionFailure, *AIR, "sessionFailure")

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.failures: dict[str, SessionFailure] = {}
        """The latest report of each incident."""

    def fold(self, update: object) -> None:
        """Take a failure that an update carries: the session's information, or in version 2 its state."""
        found = self.failure.of(update)
        if found is not None and ((known := self.failures.get(found.id)) is None or known.revision <= found.revision):
            self.failures = {**self.failures, found.id: found}

    @classmethod
    def notice(cls, update: object) -> updates.Notice | None:
        """Note a failure, with the user's options. The answer of a prompt may carry one, too."""
        if (found := cls.failure.of(update)) is None:
            return None
        ways = ", ".join(_ACTIONS.get(it, it) for it in found.actions)
        details = ". ".join(it for it in (found.details, f"You can: {ways}" if ways else None) if it)
        return updates.Notice("warning" if found.severity == "warning" else "error", found.title, details or None)


# Subagents


class SubagentSpawned(Model, tag_field="sessionUpdate", tag="subagent_spawned"):
    """A subagent that a session started, in the form of the first proposal."""

    subagent_session_id: str
    name: str
    task: Tolerant[str] = ""
    prompt: Tolerant[str | None] = None
    capabilities: Tolerant[dict[str, Json]] = msgspec.field(default_factory=dict[str, Json])


class SubagentStateUpdate(Model, tag_field="sessionUpdate", tag="subagent_state_update"):
    """The end of a subagent: `completed`, `failed`, `cancelled` or `disconnected`."""

    subagent_session_id: str
    state: str


_STOP_REASONS = {"completed": "end_turn", "cancelled": "cancelled", "failed": "error", "disconnected": "error"}


class NativeSubagents(AirExtension[dict[str, Any]], name="nativeSubagentSessions"):
    """Subagents in the form of the first proposal; a client reads them as the protocol's, in `session.subagents`."""

    word = "nativeSubagentSessions"
    updates = (SubagentSpawned, SubagentStateUpdate)

    @staticmethod
    def translate(update: Any) -> Sequence[Update] | None:
        """The same as a `SubagentUpdate`."""
        match NativeSubagents.read(update):
            case SubagentSpawned() as said:
                cancel = None if not said.capabilities.get("cancel") else updates.SessionCancelCapabilities()
                return [
                    updates.SubagentUpdate(
                        updates.SessionId(said.subagent_session_id),
                        said.name,
                        said.task,
                        updates.SubagentSessionCapabilities(cancel),
                        updates.RunningStateUpdate(),
                    )
                ]
            case SubagentStateUpdate(subagent_session_id=session_id, state=state) if state in _STOP_REASONS:
                ended = updates.IdleStateUpdate(_STOP_REASONS[state])
                return [updates.SubagentUpdate(updates.SessionId(session_id), state=ended)]
            case _:
                return None


class BackgroundSubagents(AirExtension[dict[str, Any]], name="backgroundSubagents"):
    """A turn ends at its result while its subagents continue: their updates and questions follow the answer."""

    word = "backgroundSubagents"


# Tool calls


def _is_tool_call(update: Any) -> bool:
    return hasattr(update, "tool_call_id") and hasattr(update, "raw_input")


class CommandTitles(AirExtension[dict[str, Any]], name="commandTitle"):
    """The purpose of a command as the title of its tool call; the command itself stays in the call's `raw_input`.

    A question for permission keeps the command in its title: the user decides about the command.
    """

    title = MetaMember(str, *AIR, "commandTitle")

    @staticmethod
    def translate(update: Any) -> Sequence[Any] | None:
        """The tool call with this title."""
        is_shown = _is_tool_call(update) and tag_of(update.__class__) is not None  # a question has no tag
        title = CommandTitles.title.of(update) if is_shown else None
        return None if not title else [msgspec.structs.replace(update, title=title)]


class _AirPatch(Shape):
    format: str
    text: str


class DiffPatches(AirExtension[dict[str, Any]], name="diffPatch"):
    """Exact git patches of changed files; a client reads them as the diffs of version 2, `updates.Diff`."""

    word = "diffPatch"
    patch = MetaMember(_AirPatch, *AIR, "diffPatch")

    @staticmethod
    def translate(update: Any) -> Sequence[Any] | None:
        """Return the tool call whose diffs have the patches."""
        content = getattr(update, "content", None) if _is_tool_call(update) else None
        if not isinstance(content, list):
            return None
        read = [DiffPatches._diff(it) for it in cast("list[Any]", content)]
        return None if read == content else [msgspec.structs.replace(update, content=read)]

    @staticmethod
    def _diff(block: Any) -> Any:
        patch = DiffPatches.patch.of(block) if isinstance(block, updates.TextDiff) else None
        if patch is None or patch.format != "git_patch":
            return block
        path: str = block.path
        is_new, is_gone = "--- /dev/null" in patch.text, "+++ /dev/null" in patch.text
        change = (updates.DiffAdd if is_new else updates.DiffDelete if is_gone else updates.DiffModify)(path, "text")
        return updates.Diff([change], updates.DiffPatch("git_patch", patch.text), meta=block.meta)


# Goals

GoalAction: TypeAlias = Literal["set", "pause", "resume", "clear"]
"""The actions that a client may request: set another objective, pause, resume, or clear the goal."""
GOAL_ACTIONS: tuple[GoalAction, ...] = get_args(GoalAction)


class Goal(Shape):
    """A goal that an agent works towards over several turns."""

    objective: str
    """The goal, in words."""
    status: Tolerant[str] = ""
    """Its status, in the agent's words: often `active`, `paused`, `blocked`, `limited` or `complete`."""
    tokens_used: Tolerant[int | None] = None
    token_budget: Tolerant[int | None] = None


class GoalOffer(Shape):
    """The actions on its goal that an agent offers to clients."""

    actions: Tolerant[ValidItems[str]] = msgspec.field(default_factory=list[str])
    version: Tolerant[int] = 1


class ControlGoal(Request[dict[str, Any]], method="_session/goal"):
    """Set, pause, resume or clear the goal of a session."""

    session_id: str
    action: str
    objective: str | None = None


class Goals(AirExtension[GoalOffer], name="goal"):
    """The goal of a session, which the agent works towards over several turns; clients may set it.

    Agents before codex-acp 2 and claude-agent-acp 0.90 had it in `_meta.goal`, which is read as well.
    """

    label = "Goal"
    messages = (ControlGoal,)
    _said = MetaMember(Goal, *AIR, "goal")
    _said_before = MetaMember(Goal, "goal")

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.goal: Goal | None = None
        """The latest goal; None if there is none."""

    @classmethod
    def declaration(cls, offer: GoalOffer) -> dict[str, Json]:
        """An agent declares the actions; a client declares the object alone."""
        declared = super().declaration(offer)
        if not offer.actions:
            return declared
        actions = {"version": 1, "controlMethod": ControlGoal.__method__, "actions": list(offer.actions)}
        return merged_meta(declared, _AIR_OBJECT.meta({"goal": actions}))

    @classmethod
    def declared_in(cls, meta: Mapping[str, Json]) -> GoalOffer | None:
        """The actions that the agent offers; a client that gets goals has the object itself."""
        said = _AIR_OBJECT.of(dict(meta))
        read = MetaMember(GoalOffer, "goal")
        return read.of(said or {}) or read.of(dict(meta)) or (GoalOffer() if said and "goal" not in said else None)

    @classmethod
    def place(cls) -> str:
        """The object with the actions."""
        return "_meta.jetbrains.air.goal"

    @classmethod
    def goal_in(cls, meta: Mapping[str, Any] | UnsetType | None) -> Goal | None:
        """Return the goal in the `_meta` of a session's information; None if there is none."""
        members = {} if meta is None or meta is UNSET else dict(meta)
        found = cls._said.of(members) or cls._said_before.of(members)
        return found if found is not None and found.objective else None

    def fold(self, update: object) -> None:
        """Fold the goal in the session's information, or its removal."""
        if isinstance(update, updates.SessionInfoUpdate) and isinstance(update.meta, dict):
            holders = (update.meta, _AIR_OBJECT.of(update.meta) or {})
            if any("goal" in it for it in holders):
                self.goal = self.goal_in(update.meta)

    @property
    def actions(self) -> tuple[GoalAction, ...]:
        """Return the actions that the agent offers; empty if it has no goals."""
        offer = self.offer
        return () if offer is None else tuple(it for it in GOAL_ACTIONS if it in offer.actions)

    async def set(self, objective: str) -> None:
        """Set the session's goal; raises `CapabilityMissing` if the agent does not offer it."""
        if not objective.strip():
            raise ValueError("a goal must be a text that is not empty")
        await self._control("set", objective)

    async def pause(self) -> None:
        """Pause the goal; raises `CapabilityMissing` if the agent does not offer it."""
        await self._control("pause")

    async def resume(self) -> None:
        """Resume the goal; raises `CapabilityMissing` if the agent does not offer it."""
        await self._control("resume")

    async def clear(self) -> None:
        """Forget the goal; raises `CapabilityMissing` if the agent does not offer it."""
        await self._control("clear")

    async def _control(self, action: GoalAction, objective: str | None = None) -> None:
        if action not in self.actions:
            raise CapabilityMissing(
                f"{action!r} in the actions of {self.place()}", f"session.extension(Goals).{action}()"
            )
        await self.request(ControlGoal(self.session_id, action, objective))

    @property
    def summary(self) -> str | None:
        """Return the goal and its status as one text."""
        return None if self.goal is None else f"{self.goal.objective} ({self.goal.status})".replace(" ()", "")


# The list of sessions


class SessionRow(Model):
    """A session in an agent's list, with its details beyond the protocol."""

    session_id: str
    cwd: str
    title: Tolerant[str | None] = None
    updated_at: Tolerant[str | None] = None

    @property
    def details(self) -> SessionDetails:
        """Return the details in `_meta.jetbrains.air`."""
        return SessionIndex.row.of(self) or SessionDetails()


class SessionDetails(Shape):
    """Details of a listed session beyond the protocol; None for unknown ones."""

    archived: Tolerant[bool] = False
    state: Tolerant[str | None] = None
    last_prompt_at: Tolerant[str | None] = None
    last_turn_ended_at: Tolerant[str | None] = None
    model: Tolerant[str | None] = None
    forked_from: Tolerant[str | None] = None
    agent_worktree: Tolerant[bool] = False


class SessionRows(Model):
    """Sessions of an agent."""

    sessions: ValidItems[SessionRow]


class BatchGetSessions(Request[SessionRows], method="_session/batch_get"):
    """The rows of sessions whose ids are known."""

    session_ids: list[str]


class RenameSession(Request[dict[str, Any]], method="_session/rename"):
    """Give a session a title."""

    session_id: str
    title: str


class ArchiveSession(Request[dict[str, Any]], method="_session/archive"):
    """Archive a session; one that is open is closed."""

    session_id: str


class UnarchiveSession(Request[dict[str, Any]], method="_session/unarchive"):
    """Take a session out of the archive."""

    session_id: str


class ListSubscription(Model):
    """A subscription to changes of the list."""

    subscription_id: str


class SubscribeToList(Request[ListSubscription], method="_session/list/subscribe"):
    """Report changes of the sessions of a folder."""

    cwd: str


class UnsubscribeFromList(Request[dict[str, Any]], method="_session/list/unsubscribe"):
    """Report them no longer."""

    subscription_id: str


class SessionListChanges(Notification, method="_session/list/changes"):
    """The rows of a subscribed list that changed, and the ids of the sessions that are gone."""

    subscription_id: str
    sessions: Tolerant[ValidItems[SessionRow]] = msgspec.field(default_factory=list[SessionRow])
    removed: Tolerant[ValidItems[str]] = msgspec.field(default_factory=list[str])


class SessionIndex(AirExtension[dict[str, Any]], name="sessionIndex"):
    """The sessions of an agent, open or not: their rows by id, titles, the archive, and reports of changes.

    `remote.extension(SessionIndex)` has the calls; `@client.on(SessionListChanges)` gets the changes. Rows of
    `remote.sessions(meta=SessionIndex.options(limit=20))` have the same details: `SessionIndex.row.of(info)`.
    """

    word = "sessionIndex"
    messages = (
        BatchGetSessions,
        RenameSession,
        ArchiveSession,
        UnarchiveSession,
        SubscribeToList,
        UnsubscribeFromList,
        SessionListChanges,
    )
    row = MetaMember(SessionDetails, *AIR)

    @staticmethod
    def options(
        limit: int | None = None, *, archived: Literal["unarchived", "archived", "all"] | None = None
    ) -> dict[str, Json]:
        """Return the `_meta` for `remote.sessions`: rows of one page, and whether archived sessions are listed."""
        chosen = {name: value for name, value in (("limit", limit), ("archived", archived)) if value is not None}
        return _AIR_OBJECT.meta({"version": 1, "list": chosen})

    async def get(self, *session_ids: str) -> list[SessionRow]:
        """Return the rows of these sessions; those that the agent does not know are left out."""
        return (await self.request(BatchGetSessions(list(session_ids)))).sessions

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title."""
        await self.request(RenameSession(session_id, title))

    async def archive(self, session_id: str) -> None:
        """Archive a session; the agent closes one that is open."""
        await self.request(ArchiveSession(session_id))

    async def unarchive(self, session_id: str) -> None:
        """Take a session out of the archive."""
        await self.request(UnarchiveSession(session_id))

    async def subscribe(self, cwd: str) -> str:
        """Request reports of changes of the list, for the sessions of this folder; returns the id of the
        subscription.
        """
        return (await self.request(SubscribeToList(cwd))).subscription_id

    async def unsubscribe(self, subscription_id: str) -> None:
        """End a subscription."""
        await self.request(UnsubscribeFromList(subscription_id))
