"""Sessions: their ids, folders and lists, and what is replayed when one is opened again."""

from __future__ import annotations

import re
from typing import Any, cast

from accord_check.conversation import Exchange, Frame, Update, objects
from accord_check.passive.observer import Observer

REPLAYED = frozenset(
    (
        "user_message",
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
    )
)
"""The updates that belong to a turn; all others may come at any time."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_OPENINGS = ("session/new", "session/load", "session/resume", "session/fork")


def is_absolute(path: str) -> bool:
    """Whether a path is absolute, on POSIX or on Windows.

    >>> is_absolute("/a"), is_absolute("C:\\\\a"), is_absolute("file:///a")
    (True, True, False)
    """
    return path.startswith("/") or _WINDOWS.match(path) is not None


class Sessions(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._loaded: dict[str, Exchange] = {}
        """Sessions that were loaded and not prompted since, with the load."""
        self._strangers: dict[str, list[Frame]] = {}
        """Updates of sessions whose opening is not answered yet."""
        self._message: dict[str, tuple[str, Any]] = {}
        self._replayed_ids: dict[str, set[Any]] = {}

    def request(self, exchange: Exchange) -> None:
        if exchange.by != "client":
            return
        if exchange.method in _OPENINGS:
            self._folders(exchange)
            self._servers(exchange)
        if exchange.method == "session/list" and isinstance(cwd := exchange.params.get("cwd"), str):
            self._absolute(cwd, "cwd", exchange.frame)
        if exchange.session_id is not None:
            self._replayed_ids.pop(exchange.session_id, None)
            self._message.pop(exchange.session_id, None)
            if exchange.method in ("session/prompt", "session/load", "session/resume"):
                self._loaded.pop(exchange.session_id, None)
        if exchange.method == "session/prompt" and exchange.session_id is not None:
            session = self.conversation.session_of(exchange)
            problem = None
            if session is None:
                problem = f"a prompt in the session {exchange.session_id!r}, which was not opened on this connection"
            elif session.is_closed:
                problem = f"a prompt in the session {session.id!r}, which is closed"
            elif session.replay is not None:
                problem = f"a prompt in the session {session.id!r} before it was open"
            self.judge("prompt.session-first", problem, exchange.frame, session=exchange.session_id)

    def answer(self, exchange: Exchange) -> None:
        frame = exchange.answered
        if frame is None or not exchange.succeeded or exchange.by != "client":
            return
        made = exchange.fields.get("sessionId")
        if exchange.method in ("session/new", "session/fork") and isinstance(made, str):
            again = f"the id {made!r} is that of another session" if made in self.conversation.sessions else None
            self.judge("session.new.unique-id", again, exchange.frame, frame, session=made)
            self._strangers.pop(made, None)
        elif _replays(exchange) and exchange.session_id is not None:
            self._loaded[exchange.session_id] = exchange
            self.saw("session.load.replay-before-answer", "agent")
        elif exchange.method == "session/resume":
            self.saw("session.resume.no-replay", "agent")
        elif exchange.method == "session/list":
            self._list(exchange, frame)

    def update(self, update: Update) -> None:
        session, frame, session_id = update.session, update.told.frame, update.told.session_id
        if update.told.by != "agent" or session_id is None:
            return
        if session is None:
            self._strangers.setdefault(session_id, []).append(frame)
        else:
            self.saw("lint.update.unknown-session", "agent")
        if update.kind in REPLAYED:
            self._past(update, session_id)
        if update.kind == "session_info_update":
            names = [name for name in ("cwd", "additionalDirectories") if name in update.fields]
            wrong = f"a session_info_update has {names[0]}" if names else None
            self.judge("session.info.fixed-fields-absent", wrong, frame, session=session_id)
            self._time(update.fields.get("updatedAt"), frame)

    def end(self) -> None:
        for session_id, frames in self._strangers.items():
            # A request that opens the session may still be open, and its answer may be what is missing.
            if not any(exchange.method in _OPENINGS for exchange in self.conversation.open["client"].values()):
                self.found(
                    "lint.update.unknown-session",
                    f"updates for the session {session_id!r}, which no answer opened",
                    *frames[:3],
                    session=session_id,
                )

    def _past(self, update: Update, session_id: str) -> None:
        session, frame = update.session, update.told.frame
        # In version 2 a session that is at work goes on to report it while it is resumed.
        is_past = self.conversation.version == 1 or update.kind.startswith("user_message")
        if is_past and (load := self._loaded.get(session_id)) is not None and load.answered is not None:
            self.found(
                "session.load.replay-before-answer",
                f"{update.kind} came after the answer to {load.method}, without a prompt",
                load.answered,
                frame,
                same=f"after {load.frame.number}",
                session=session_id,
            )
        if session is None or session.replay is None:
            return
        if _replays(session.replay) and session.replay.method == "session/resume":
            return
        if session.replay.method == "session/resume" and is_past:
            self.found(
                "session.resume.no-replay",
                f"{update.kind} came before the answer to session/resume",
                session.replay.frame,
                frame,
                same=f"before {session.replay.frame.number}",
                session=session_id,
            )
        elif update.kind.endswith("_chunk") and session.replay.method == "session/load":
            self._message_id(update, session_id)
        else:
            self._message.pop(session_id, None)

    def _message_id(self, update: Update, session_id: str) -> None:
        """The messages of a replay: a message whose id was seen in an earlier message of it has no id of its own."""
        given = update.fields.get("messageId")
        if not isinstance(given, str):
            self._message.pop(session_id, None)
            return
        now = (update.kind, given)
        if self._message.get(session_id) == now:
            return
        seen = self._replayed_ids.setdefault(session_id, set())
        # Thoughts and words of one answer may share an id: the page leaves it open.
        mine = (update.kind.startswith("user"), given)
        other = (not mine[0], given)
        problem = None
        if other in seen:
            problem = f"the message id {given!r} is used for a message of the user and for one of the agent"
        self.judge("session.load.message-ids-unique", problem, update.told.frame, session=session_id)
        seen.add(mine)
        self._message[session_id] = now

    def _folders(self, exchange: Exchange) -> None:
        cwd, extra = exchange.params.get("cwd"), exchange.params.get("additionalDirectories")
        if isinstance(cwd, str):
            self._absolute(cwd, "cwd", exchange.frame)
        roots = [root for root in cast("list[Any]", extra) if isinstance(root, str)] if isinstance(extra, list) else []
        for root in roots:
            self._absolute(root, "additionalDirectories", exchange.frame)
        if roots:
            twice = len(set(roots)) < len(roots) or cwd in roots
            problem = "a folder stands twice among cwd and additionalDirectories" if twice else None
            self.judge("session.roots.no-duplicates", problem, exchange.frame)

    def _servers(self, exchange: Exchange) -> None:
        for server in objects(exchange.params.get("mcpServers")):
            command = server.get("command")
            if server.get("type") in (None, "stdio") and isinstance(command, str):
                problem = None if is_absolute(command) else f"the command of an MCP server is {command!r}"
                self.judge("mcp.command-absolute", problem, exchange.frame)

    def _absolute(self, path: str, where: str, frame: Frame) -> None:
        problem = None if is_absolute(path) else f"{where} is {path!r}, which is not absolute"
        self.judge("paths.client-sends-absolute", problem, frame)

    def _list(self, exchange: Exchange, frame: Frame) -> None:
        wanted = exchange.params.get("cwd")
        entries = list(objects(exchange.fields.get("sessions")))
        self.saw("session.delete.leaves-list", "agent")
        if isinstance(wanted, str):
            others = [entry.get("cwd") for entry in entries if not _same_folder(entry.get("cwd"), wanted)]
            wrong = f"a list for {wanted!r} has a session in {others[0]!r}" if others else None
            self.judge("session.list.filtered-by-cwd", wrong, exchange.frame, frame)
        for entry in entries:
            folder, entry_id = entry.get("cwd"), entry.get("sessionId")
            if isinstance(folder, str):
                wrong = None if is_absolute(folder) else f"the session {entry_id!r} has the cwd {folder!r}"
                self.judge("lint.list.cwd-absolute", wrong, frame)
            self._time(entry.get("updatedAt"), frame)
            session = self.conversation.sessions.get(entry_id) if isinstance(entry_id, str) else None
            if session is not None and session.is_deleted:
                self.found("session.delete.leaves-list", f"the list has the deleted session {entry_id!r}", frame)

    def _time(self, value: Any, frame: Frame) -> None:
        if isinstance(value, str):
            wrong = None if _TIME.fullmatch(value) else f"updatedAt is {value[:60]!r}"
            self.judge("session.list.times-iso-8601", wrong, frame)


def _replays(exchange: Exchange) -> bool:
    """Whether a request asks for the past of a session."""
    return exchange.method == "session/load" or (
        exchange.method == "session/resume" and exchange.params.get("replayFrom") is not None
    )


def _same_folder(one: Any, other: str) -> bool:
    return isinstance(one, str) and (one.rstrip("/") or "/") == (other.rstrip("/") or "/")
