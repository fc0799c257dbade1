"""Extensions of the protocol that agents in the field use, as typed helpers: display terminals, steering, goals, files.

None of them is in the specification. Each is what the named agents do, and is used only where an agent announces it or
sends it, so that other agents see nothing of it.

| extension | agents | announced or sent in |
|---|---|---|
| display terminals | codex-acp, claude-agent-acp | `_meta` of tool calls: `terminal_info` and others |
| steering | claude-agent-acp from 0.66, codex-acp from 1.2 | `_meta.steering` of `initialize` |
| goals | codex-acp from 1.6, claude-agent-acp from 0.66 | `_meta.goal` of `initialize` and of sessions |
| files as they were | every agent written with Accord | nowhere: another agent answers that it has no such method |

codex-acp 2.6 and claude-agent-acp 0.100 tell only one editor of goals; there `/goal` is a command of the agent.

    client = accord.Client(capabilities=extensions.with_display_terminals)
    async with accord.connect(command, client) as remote:
        session = await remote.new_session()
        terminals = extensions.DisplayTerminals.of(session)
        if extensions.can_steer(remote):
            await extensions.steer(remote, session.id, "Use the other file")
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, get_args

import msgspec

from accord.errors import METHOD_NOT_FOUND, CapabilityMissing, PeerError
from accord.schema import codec, v1
from accord.schema.base import Json

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent
    from accord.services.file_service import RewindFilesResponse
    from accord.session import Observer


KEPT = 1024 * 1024
"""Characters of the output of one display terminal that are kept, its end."""
MOST = 256
"""Display terminals of one session that are kept, the newest."""


# Display terminals


def with_display_terminals(capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
    """These capabilities with `_meta.terminal_output`, for which agents show their own commands as terminals."""
    return msgspec.structs.replace(capabilities, meta={**(capabilities.meta or {}), "terminal_output": True})


class DisplayTerminal:
    """A command that the agent runs by itself and shows in a tool call: its output and how it ended."""

    def __init__(self, terminal_id: str) -> None:
        self.id = terminal_id
        """Its id, which the content of the tool call names."""
        self.cwd: str | None = None
        """The folder in which the command runs."""
        self.exit_code: int | None = None
        """The exit code of the command."""
        self.signal: str | None = None
        """The signal that ended the command."""
        self.has_ended = False
        """Whether the agent has said how the command ended."""
        self.forgotten = 0
        """How many of the first characters of the output were dropped."""
        self._text = io.StringIO()

    def __repr__(self) -> str:
        return f"DisplayTerminal({self.id!r}, {self._text.tell()} characters, ended={self.has_ended})"

    @property
    def text(self) -> str:
        """The output so far. It is untrusted: it may hold codes that control a terminal."""
        return self._text.getvalue()

    def add(self, text: str) -> None:
        """Append output."""
        self._text.write(text)
        if self._text.tell() > 2 * KEPT:
            self.replace(self._text.getvalue(), forgotten=self.forgotten)

    def replace(self, text: str, *, forgotten: int = 0) -> None:
        """Replace the output."""
        self.forgotten = forgotten + max(0, len(text) - KEPT)
        self._text = io.StringIO()
        self._text.write(text[-KEPT:])


class _Watched(Protocol):
    """A session that tells of its changes."""

    def on_change(self, observer: Observer) -> Callable[[], None]: ...


class DisplayTerminals:
    """The display terminals of one session, by their ids.

    The updates of a tool call carry them in `_meta`. The state of a session keeps only the latest value of each key, so
    the deltas are folded here.

    >>> terminals = DisplayTerminals()
    >>> def told(**meta):
    ...     return v1.ToolCallProgress(v1.ToolCallId("call"), meta=meta)
    >>> terminals.add(told(terminal_info={"terminal_id": "t"}))
    ['t']
    >>> terminals.add(told(terminal_output_delta={"terminal_id": "t", "data": "ok"}))
    ['t']
    >>> terminals["t"].text
    'ok'
    """

    def __init__(self) -> None:
        self._terminals: dict[str, DisplayTerminal] = {}

    @classmethod
    def of(cls, session: _Watched) -> DisplayTerminals:
        """The display terminals of a session, from now on: of a `RemoteSession` or its `state`."""
        terminals = cls()
        session.on_change(terminals.add)
        return terminals

    def __getitem__(self, terminal_id: str) -> DisplayTerminal:
        """The terminal with this id; raises KeyError for one that the agent has not shown."""
        return self._terminals[terminal_id]

    def get(self, terminal_id: str) -> DisplayTerminal | None:
        """The terminal with this id; None for one that the agent has not shown."""
        return self._terminals.get(terminal_id)

    def __len__(self) -> int:
        """How many terminals are kept."""
        return len(self._terminals)

    def add(self, update: object) -> list[str]:
        """Take what an update says about display terminals; returns the ids of those that changed."""
        meta = getattr(update, "meta", None)
        if not meta or not isinstance(meta, dict):
            return []
        changed: list[str] = []
        for key, fold in _FOLDS.items():
            said = cast("dict[str, Any]", meta).get(key)
            if isinstance(said, dict) and isinstance(its_id := cast("dict[str, Any]", said).get("terminal_id"), str):
                fold(self._terminal(its_id), cast("dict[str, Any]", said))
                changed.append(its_id)
        return list(dict.fromkeys(changed))

    def _terminal(self, terminal_id: str) -> DisplayTerminal:
        found = self._terminals.get(terminal_id)
        if found is None:
            found = self._terminals[terminal_id] = DisplayTerminal(terminal_id)
            if len(self._terminals) > MOST:
                del self._terminals[next(iter(self._terminals))]
        return found


def _fold_info(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    terminal.cwd = _text(said.get("cwd")) or terminal.cwd


def _fold_output(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    terminal.replace(_text(said.get("data")) or "")


def _fold_delta(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    terminal.add(_text(said.get("data")) or "")


def _fold_exit(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    code = said.get("exit_code")
    terminal.exit_code = code if isinstance(code, int) else None
    terminal.signal = _text(said.get("signal"))
    terminal.has_ended = True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_FOLDS: dict[str, Callable[[DisplayTerminal, Mapping[str, Any]], None]] = {
    "terminal_info": _fold_info,
    "terminal_output": _fold_output,
    "terminal_output_delta": _fold_delta,
    "terminal_exit": _fold_exit,
}


# Steering

Steered: TypeAlias = Literal["injected", "startedNewTurn", "failed", "promptRequired"]
"""What came of steering: taken into the running turn, a new turn, not possible now, or to be sent as a prompt."""

_STEERED: dict[str, Steered] = {
    "injected": "injected",
    "startedNewTurn": "startedNewTurn",
    "failed": "failed",
    "promptRequired": "promptRequired",
}


def can_steer(remote: RemoteAgent) -> bool:
    """Whether the agent takes a message into the turn that runs."""
    said = remote.meta.get("steering")
    return isinstance(said, dict) and cast("dict[str, Any]", said).get("supported") is True


async def steer(remote: RemoteAgent, session_id: str, *content: str | v1.ContentBlock) -> Steered:
    """Send a message into the turn that runs in this session; `can_steer` says whether the agent takes one.

    An outcome of a kind that is not known counts as `failed`: send the message as a prompt then.
    """
    blocks = [v1.TextContent(it) if isinstance(it, str) else it for it in content]
    params: Json = {"sessionId": session_id, "prompt": [codec.plain(it) for it in blocks]}
    answer: Any = await remote.request_raw("_session/steering", params)
    outcome = cast("dict[str, Any]", answer).get("outcome") if isinstance(answer, dict) else None
    return _STEERED.get(outcome, "failed") if isinstance(outcome, str) else "failed"


# Goals

GoalAction: TypeAlias = Literal["set", "pause", "resume", "clear"]
"""What a client may ask for: another objective, or that the agent pauses, goes on, or forgets its goal."""

GOAL_ACTIONS: tuple[GoalAction, ...] = get_args(GoalAction)


@dataclass(frozen=True)
class Goal:
    """A goal that an agent works towards over several turns."""

    objective: str
    """What is to be reached."""
    status: str
    """How it stands, in the agent's words: often `active`, `paused`, `blocked`, `limited` or `complete`."""


def goal_of(meta: Mapping[str, Any] | None) -> Goal | None:
    """The goal in the `_meta` of a session's information; None if there is none."""
    told = _table((meta or {}).get("goal"))
    objective = _text(told.get("objective"))
    return Goal(objective, _text(told.get("status")) or "") if objective else None


def goal_actions(remote: RemoteAgent) -> tuple[GoalAction, ...]:
    """What the agent says that clients may ask for; empty if it knows no goals."""
    offered = _table(remote.meta.get("goal")).get("actions")
    return tuple(it for it in GOAL_ACTIONS if isinstance(offered, list) and it in offered)


async def control_goal(remote: RemoteAgent, session_id: str, action: GoalAction, objective: str | None = None) -> None:
    """Set, pause, resume or clear the goal of a session; what comes of it is in the session's information.

    Raises `CapabilityMissing` for an action that the agent does not offer, and ValueError if `set` has no objective.
    """
    if action not in goal_actions(remote):
        raise CapabilityMissing(f'_meta["goal"]["actions"] with {action!r}', "control_goal()")
    params: dict[str, Json] = {"sessionId": session_id, "action": action}
    if action == "set":
        if not (objective or "").strip():
            raise ValueError("control_goal(): 'set' needs an objective, as a text that is not empty")
        params["objective"] = objective
    await remote.request_raw(_text(_table(remote.meta["goal"]).get("controlMethod")) or "_session/goal", params)


# Files as they were


async def rewind_files(
    remote: RemoteAgent, session_id: str, cursor_id: str | None = None, *, overwrite: bool = False
) -> RewindFilesResponse | None:
    """Have the agent bring back the files that it wrote by itself, as they were before the message at a cursor.

    Without a cursor, all that it wrote in the session is meant. Files that somebody else has changed since are left,
    unless `overwrite` is true. None if the agent cannot do it.
    """
    from accord.services.file_service import RewindFilesRequest

    try:
        return await remote.request(RewindFilesRequest(session_id, cursor_id, overwrite))
    except PeerError as error:
        if error.code == METHOD_NOT_FOUND:
            return None
        raise


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
