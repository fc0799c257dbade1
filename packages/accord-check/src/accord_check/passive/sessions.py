"""Sessions: their ids, folders and lists, their replays, cursors and modes, and their config options and commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from accord_check.conversation import Exchange, Frame, Update, object_of, objects, repeated
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

_MESSAGES = ("user_message", "agent_message", "agent_thought")

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
    def begin(self) -> None:
        self._loaded: dict[str, Exchange] = {}
        """Sessions that were loaded and not prompted since, with the load."""
        self._strangers: dict[str, list[Frame]] = {}
        """Updates of sessions whose opening is not answered yet."""
        self._message: dict[str, tuple[str, Any]] = {}
        self._replayed_ids: dict[str, set[Any]] = {}
        self._ends: dict[str, list[Frame]] = {}
        """The replay_complete updates of each session since it was resumed last."""
        self._after_end: dict[str, Update] = {}
        """The first message of each session after its replay_complete, before the answer."""
        self._active: set[str] = set()
        """The sessions that were reported at work since they were last resumed."""

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
            if exchange.method == "session/resume":
                self._ends[exchange.session_id] = []
                self._after_end.pop(exchange.session_id, None)
                self._active.discard(exchange.session_id)
        if exchange.method == "session/prompt" and exchange.session_id is not None:
            session = self.conversation.session_of(exchange)
            problem = None
            if session is None:
                problem = f"a prompt in the session {exchange.session_id!r}, which was not opened on this connection"
            elif session.is_closed:
                problem = f"a prompt in the session {session.id!r}, which is closed"
            elif session.replay is not None:
                problem = f"a prompt in the session {session.id!r} before it was open"
            self.judge("prompt.session-first", problem, exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if not exchange.succeeded or exchange.by != "client":
            return
        made = exchange.fields.get("sessionId")
        if exchange.method in ("session/new", "session/fork") and isinstance(made, str):
            verdict = made not in self.conversation.sessions or f"the id {made!r} is that of another session"
            self.judge("session.new.unique-id", verdict, exchange, session=made)
            self._strangers.pop(made, None)
        elif replays_past(exchange) and exchange.session_id is not None:
            self._loaded[exchange.session_id] = exchange
            self.saw("session.load.replay-before-answer", "agent")
            if exchange.method == "session/resume":
                self._replay_ended(exchange, exchange.session_id, frame)
        elif exchange.method == "session/resume":
            self.saw("session.resume.no-replay", "agent")
            self.saw("lint.replay.complete-only-asked", "agent")
        elif exchange.method == "session/list":
            self._list(exchange, frame)

    def update(self, update: Update) -> None:
        session, frame, session_id = update.session, update.frame, update.session_id
        if session is None:
            self._strangers.setdefault(session_id, []).append(frame)
        else:
            self.saw("lint.update.unknown-session", "agent")
        if update.kind == "replay_complete" and self.conversation.version == 2:
            self._replay_complete(update, session_id)
        elif update.kind.startswith(_MESSAGES) and self._ends.get(session_id):
            self._after_end.setdefault(session_id, update)
        elif update.kind == "state_update" and update.fields.get("state") != "idle":
            self._active.add(session_id)
        if update.kind in REPLAYED:
            self._past(update, session_id)
        if update.kind == "session_info_update":
            names = [name for name in ("cwd", "additionalDirectories") if name in update.fields]
            self.judge("session.info.fixed-fields-absent", not names or f"a session_info_update has {names[0]}", frame)
            self._time(update.fields.get("updatedAt"), frame)

    def end(self) -> None:
        for session_id, frames in self._strangers.items():
            # A request that opens the session may still be open, and its answer may be the missing one.
            if not any(exchange.method in _OPENINGS for exchange in self.conversation.open["client"].values()):
                self.found(
                    "lint.update.unknown-session",
                    f"updates for the session {session_id!r}, which no answer opened",
                    *frames[:3],
                    session=session_id,
                )

    def _replay_complete(self, update: Update, session_id: str) -> None:
        """A mark belongs to the open replay of its session; a child session has the one of its parent."""
        session = update.session
        if session is None:
            asked = any(replays_past(exchange) for exchange in self.conversation.open["client"].values())
        else:
            asked = session.replay is not None and replays_past(session.replay)
        wrong = None if asked else "replay_complete came although no replay was asked for"
        self.judge("lint.replay.complete-only-asked", wrong, update)
        if asked:
            self._ends.setdefault(session_id, []).append(update.frame)

    def _replay_ended(self, exchange: Exchange, session_id: str, frame: Frame) -> None:
        session = self.conversation.sessions.get(session_id)
        if session is None or session.replay is not exchange:
            return  # two resumes at once: nothing shows which of them a mark ends
        ends, late = self._ends.pop(session_id, []), self._after_end.get(session_id)
        how_many = f"{len(ends)} updates replay_complete" if ends else "no replay_complete"
        wrong = None if len(ends) == 1 else f"{how_many} came before the answer to session/resume"
        if wrong is None and late is not None and session_id not in self._active:
            wrong = f"{late.kind} came after replay_complete, of a session that is not at work"
        self.judge("lint.replay.complete-once", wrong, exchange.frame, *ends, frame)

    def _past(self, update: Update, session_id: str) -> None:
        session, frame = update.session, update.frame
        # In version 2 a session at work continues to report it while it is resumed.
        is_past = self.conversation.version == 1 or update.kind.startswith("user_message")
        if is_past and (load := self._loaded.get(session_id)) is not None and load.answered is not None:
            self.found(
                "session.load.replay-before-answer",
                f"{update.kind} came after the answer to {load.method}, without a prompt",
                load.answered,
                frame,
                same=f"after {load.frame.number}",
            )
        if session is None or session.replay is None:
            return
        if replays_past(session.replay) and session.replay.method == "session/resume":
            return
        if session.replay.method == "session/resume" and is_past:
            self.found(
                "session.resume.no-replay",
                f"{update.kind} came before the answer to session/resume",
                session.replay.frame,
                frame,
                same=f"before {session.replay.frame.number}",
            )
        elif update.kind.endswith("_chunk") and session.replay.method == "session/load":
            self._message_id(update, session_id)
        else:
            self._message.pop(session_id, None)

    def _message_id(self, update: Update, session_id: str) -> None:
        """Judge the messages of a replay: a message whose id was in an earlier message of it has no id of its own."""
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
        self.judge("session.load.message-ids-unique", problem, update)
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
            verdict = not twice or "a folder stands twice among cwd and additionalDirectories"
            self.judge("session.roots.no-duplicates", verdict, exchange)

    def _servers(self, exchange: Exchange) -> None:
        for server in objects(exchange.params.get("mcpServers")):
            command = server.get("command")
            if server.get("type") in (None, "stdio") and isinstance(command, str):
                verdict = is_absolute(command) or f"the command of an MCP server is {command!r}"
                self.judge("mcp.command-absolute", verdict, exchange)

    def _absolute(self, path: str, where: str, frame: Frame) -> None:
        verdict = is_absolute(path) or f"{where} is {path!r}, which is not absolute"
        self.judge("paths.client-sends-absolute", verdict, frame)

    def _list(self, exchange: Exchange, frame: Frame) -> None:
        wanted = exchange.params.get("cwd")
        entries = list(objects(exchange.fields.get("sessions")))
        self.saw("session.delete.leaves-list", "agent")
        if isinstance(wanted, str):
            others = [entry.get("cwd") for entry in entries if not _same_folder(entry.get("cwd"), wanted)]
            verdict = not others or f"a list for {wanted!r} has a session in {others[0]!r}"
            self.judge("session.list.filtered-by-cwd", verdict, exchange)
        for entry in entries:
            folder, entry_id = entry.get("cwd"), entry.get("sessionId")
            if isinstance(folder, str):
                verdict = is_absolute(folder) or f"the session {entry_id!r} has the cwd {folder!r}"
                self.judge("lint.list.cwd-absolute", verdict, frame)
            self._time(entry.get("updatedAt"), frame)
            session = self.conversation.sessions.get(entry_id) if isinstance(entry_id, str) else None
            if session is not None and session.is_deleted:
                self.found("session.delete.leaves-list", f"the list has the deleted session {entry_id!r}", frame)

    def _time(self, value: Any, frame: Frame) -> None:
        if isinstance(value, str):
            wrong = None if _TIME.fullmatch(value) else f"updatedAt is {value[:60]!r}"
            self.judge("session.list.times-iso-8601", wrong, frame)


def replays_past(exchange: Exchange) -> bool:
    """Whether a request asks for the past of a session."""
    return exchange.method == "session/load" or (
        exchange.method == "session/resume" and exchange.params.get("replayFrom") is not None
    )


def _same_folder(one: Any, other: str) -> bool:
    return isinstance(one, str) and (one.rstrip("/") or "/") == (other.rstrip("/") or "/")


_CATEGORIES = ("mode", "model", "model_config", "thought_level")


class Options(Observer):
    def begin(self) -> None:
        self._modes: dict[str, set[Any]] = {}
        self._options: dict[str, dict[Any, dict[str, Any]]] = {}

    def request(self, exchange: Exchange) -> None:
        if exchange.by == "client" and exchange.method in _OPENINGS and self.conversation.is_initialized:
            self._initial(exchange)
        if exchange.by != "client" or exchange.session_id is None:
            return
        if exchange.method == "session/set_mode":
            self._set_mode(exchange)
        elif exchange.method == "session/set_config_option":
            self._set_option(exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.by != "client" or not exchange.succeeded:
            return
        made = exchange.fields.get("sessionId")
        session_id = made if isinstance(made, str) else exchange.session_id
        if session_id is None:
            return
        if isinstance(exchange.fields.get("modes"), dict):
            self._mode_state(exchange.fields["modes"], session_id, frame)
        if isinstance(exchange.fields.get("configOptions"), list):
            is_change = exchange.method == "session/set_config_option"
            self._option_list(
                exchange.fields["configOptions"],
                session_id,
                frame,
                whole="config.set.whole-state" if is_change else None,
            )

    def update(self, update: Update) -> None:
        session_id, frame = update.session_id, update.frame
        if update.kind == "current_mode_update" and session_id in self._modes:
            current = update.fields.get("currentModeId", update.fields.get("modeId"))
            verdict = current in self._modes[session_id] or f"the current mode {current!r} is not offered"
            self.judge("mode.current-is-offered", verdict, frame)
        elif update.kind == "config_option_update":
            self._option_list(update.fields.get("configOptions"), session_id, frame, whole="config.update.whole-state")
        elif update.kind == "available_commands_update":
            session = update.session
            if self.conversation.version == 2:
                return  # its updates may come before the answer
            early = session is None or (session.opened.answered is None and session.opened.method != "session/load")
            verdict = not early or "available_commands_update came before the answer that opens the session"
            self.judge("commands.after-session-exists", verdict, frame)

    def _initial(self, exchange: Exchange) -> None:
        """Return the client's values for a session that it opens."""
        wanted = [id_of(option) for option in objects(exchange.params.get("configOptions"))]
        path = "sessionCapabilities.options" if self.conversation.version == 1 else "session.options"
        undeclared = not self.declares("agent", path)
        name, said = "lint.options.only-when-advertised", f"configOptions, but the agent did not declare {path}"
        self.judge(name, not (undeclared and wanted) or said, exchange)
        if wanted:
            twice = repeated(wanted)
            verdict = not twice or f"the option {twice[0]!r} is given twice"
            self.judge("lint.options.initial-unique", verdict, exchange)

    def _mode_state(self, state: dict[str, Any], session_id: str, frame: Frame) -> None:
        ids = [mode.get("id") for mode in objects(state.get("availableModes"))]
        current = state.get("currentModeId")
        self._modes[session_id] = {given for given in ids if isinstance(given, str)}
        verdict = current in ids or current is None or f"the current mode {current!r} is not among {ids}"
        self.judge("mode.current-is-offered", verdict, frame)
        self.judge("mode.ids-unique", not repeated(ids) or f"two modes have the same id, among {ids}", frame)

    def _set_mode(self, exchange: Exchange) -> None:
        offered, wanted = self._modes.get(exchange.session_id or ""), exchange.params.get("modeId")
        if offered is not None:
            verdict = wanted in offered or f"the mode {wanted!r} is not offered"
            self.judge("mode.set.offered-only", verdict, exchange)

    def _option_list(self, given: Any, session_id: str, frame: Frame, *, whole: str | None) -> None:
        options = [option for option in objects(given) if isinstance(id_of(option), str)]
        known = self._options.get(session_id, {})
        ids = [id_of(option) for option in options]
        twice = repeated(ids)
        self.judge("config.ids-unique", not twice or f"two options have the id {twice[0]!r}", frame)
        # An option may appear and disappear with the value of another, so only the rest of a list is suspect.
        if whole is not None:
            alone = len(ids) == 1 and len(known) > 1
            wrong = f"only the option {ids[0]!r} of {len(known)} options" if alone else None
            if not ids and known:
                wrong = f"none of {len(known)} options"
            self.judge(whole, wrong, frame)
        for option in options:
            self._option(option, frame)
        self._options[session_id] = {**known, **{id_of(option): option for option in options}}

    def _option(self, option: dict[str, Any], frame: Frame) -> None:
        category, current = option.get("category"), option.get("currentValue")
        if isinstance(category, str):
            fits = category in _CATEGORIES or category.startswith("_")
            verdict = fits or f"the option {id_of(option)!r} has the category {category!r}"
            self.judge("config.category.own-underscore", verdict, frame)
        values = values_of(option)
        if values is not None and current is not None:
            verdict = (
                current in values or f"the option {id_of(option)!r} has the value {current!r}, which it does not list"
            )
            self.judge("lint.config.current-is-offered", verdict, frame)

    def _set_option(self, exchange: Exchange) -> None:
        option = self._options.get(exchange.session_id or "", {}).get(exchange.params.get("configId"))
        value, kind = exchange.params.get("value"), exchange.params.get("type")
        if option is None:
            return
        name = id_of(option)
        if option.get("type") == "boolean":
            fits = isinstance(value, bool) and kind == "boolean"
            verdict = fits or f"the boolean option {name!r} was set to {value!r} with the type {kind!r}"
            self.judge("config.boolean.set-with-type", verdict, exchange)
        elif (values := values_of(option)) is not None:
            verdict = value in values or f"the option {name!r} was set to {value!r}, which it does not list"
            self.judge("config.set.offered-only", verdict, exchange)


def id_of(option: dict[str, Any]) -> Any:
    """The id of an option, which has another name in version 2."""
    return option.get("configId", option.get("id"))


def values_of(option: dict[str, Any]) -> list[Any] | None:
    """Return the values of a select option, including those of groups; None for another option."""
    given = option.get("options")
    if option.get("type") != "select" or not isinstance(given, list):
        return None
    values: list[Any] = []
    for item in objects(cast("list[Any]", given)):
        is_group = "group" in item or "groupId" in item
        inner = list(objects(item.get("options"))) if is_group else [item]
        values += [each.get("value") for each in inner]
    return values


_ID_OF_ANCHOR = {
    **dict.fromkeys(("user_message", "agent_message", "agent_thought", "session_message"), "messageId"),
    "tool_call": "toolCallId",
    "compaction": "compactionId",
}
"""The member that names the anchor of a cursor, by the type of its anchor."""


@dataclass(slots=True)
class _CursorSeen:
    """A cursor, after its updates."""

    anchor: dict[str, Any] = field(default_factory=dict[str, Any])
    can_fork: bool = False


class Cursors(Observer):
    def begin(self) -> None:
        self._cursors: dict[tuple[str, str], _CursorSeen] = {}
        self._entities: dict[str, set[tuple[str, Any]]] = {}
        """The things that each session's updates have shown, as the type of an anchor and an id."""
        self._whole: set[str] = set()
        """The sessions of which all was shown. The past of a session that is resumed without it is known only to its
        client.
        """

    def request(self, exchange: Exchange) -> None:
        session_id, at = exchange.session_id, exchange.params.get("cursorId")
        if session_id is not None and replays_past(exchange):
            self._whole.add(session_id)
        elif session_id is not None and exchange.method == "session/resume":
            self._whole.discard(session_id)
        if exchange.method != "session/fork" or session_id not in self.conversation.sessions or not isinstance(at, str):
            return
        cursor = self._cursors.get((session_id, at))
        wrong = None if cursor is not None else f"the agent announced no cursor {at[:60]!r} for the session"
        if cursor is not None and not cursor.can_fork:
            wrong = f"the capabilities of the cursor {at[:60]!r} have no fork"
        self.judge("lint.fork.announced-cursor", wrong, exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:  # noqa: ARG002 - as in the base
        if exchange.method == "session/new" and isinstance(made := exchange.fields.get("sessionId"), str):
            self._whole.add(made)

    def update(self, update: Update) -> None:
        session_id = update.session_id
        kind = update.kind.removesuffix("_chunk").removesuffix("_summary").removesuffix("_update")
        if kind == "cursor":
            self._cursor(update, session_id)
        elif kind in _ID_OF_ANCHOR:
            self._entities.setdefault(session_id, set()).add((kind, update.fields.get(_ID_OF_ANCHOR[kind])))

    def _cursor(self, update: Update, session_id: str) -> None:
        given, anchor, frame = (
            update.fields.get("cursorId"),
            object_of(update.fields.get("anchor")),
            update.frame,
        )
        if not isinstance(given, str):
            return
        cursor = self._cursors.get((session_id, given))
        if cursor is None:
            wrong = None if anchor else f"the first update of the cursor {given[:60]!r} has no anchor"
            self.judge("lint.cursor.anchor-first", wrong, frame)
            cursor = self._cursors[session_id, given] = _CursorSeen(anchor)
        elif anchor:
            moves = f"the cursor {given[:60]!r} has moved"
            self.judge("lint.cursor.anchor-fixed", anchor == cursor.anchor or moves, frame)
        if "capabilities" in update.fields:
            cursor.can_fork = object_of(update.fields["capabilities"]).get("fork") is not None
        if anchor and session_id in self._whole:
            self._anchored(update, session_id, anchor)

    def _anchored(self, update: Update, session_id: str, anchor: dict[str, Any]) -> None:
        kind = str(anchor.get("type"))
        if (member := _ID_OF_ANCHOR.get(kind)) is not None:
            seen = (kind, anchor.get(member)) in self._entities.get(session_id, set())
            unknown = f"a cursor is anchored to the {kind} {anchor.get(member)!r}, which no update has shown"
            self.judge("lint.cursor.anchor-known", seen or unknown, update)
