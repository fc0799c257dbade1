"""The first pass of a replay over a record: its entries, each thing's last change, and its final state."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

import msgspec

from accord.errors import DecodeError, StoreError
from accord.schema import codec, v1
from accord.schema.base import Unknown
from accord.schema.shared_updates import PlanId
from accord.session import SessionState
from accord.session.state import plan_id_of
from accord.session.values import Update

# Entries of a session's record: updates as JSON, each with the version of the protocol that it was made in.
#
# An update of version 1 is kept as it is: `{"sessionUpdate": ...}`. One of another version is kept in an array after
# the version: `[2, {"sessionUpdate": ...}]`. So records from before version 2 are valid as they are, and a record may
# hold updates of both versions, because a session may be continued by a client that speaks the other one.
#
# A prompt's message of version 2 may be kept with the idempotency key under which it was sent, and with the session for
# which the key counts: `[2, {"sessionUpdate": "user_message", ...}, "<session> <key>"]`. A fork copies the entries of
# its source, and does not know its keys. The end of the turn of such a prompt is an entry, too: a `state_update`.


Version: TypeAlias = Literal[1, 2]
"""A version of the protocol."""

_MARKED = b"["
_KEY_BEGINS, _KEY_ENDS = b',"', b'"]'
_END = b'[2,{"sessionUpdate":"state_update","state":"idle","stopReason":'
_HEAD = 40
"""Bytes of an entry that show the kind of update."""


def marked(update: bytes, version: int) -> bytes:
    """Return the entry for an update of this version, given as JSON."""
    return update if version == 1 else b"[%d,%b]" % (version, update)


def marking(version: int) -> Callable[[bytes], bytes] | None:
    """Return `marked` for one version, as a function that costs a stream little; None for version 1, which
    has no mark.
    """
    return None if version == 1 else (b"[%d,%%b]" % version).__mod__


def with_key(entry: bytes, session_id: str, key: str) -> bytes:
    """The entry of a prompt's message, with the key under which it was sent."""
    return b"%b,%b]" % (entry[:-1], codec.encode(f"{session_id} {key}"))


def has_key(entry: bytes) -> bool:
    """Whether an entry has a key."""
    return entry[-2:] == _KEY_ENDS


def key_in(entry: bytes, session_id: str) -> tuple[str, str] | None:
    """Return the key of an entry that has one, and the id of its message; None if the key counts for another
    session.
    """
    entry, found = _without_key(entry)
    session, _, key = str(codec.loads(found)).partition(" ")
    return (key, _seen(update_in(entry)[1]).message_id) if session == session_id else None


def _without_key(entry: bytes) -> tuple[bytes, bytes]:
    # Within a JSON string a quotation mark follows a backslash, so the last `,"` is where the key begins.
    rest, _, key = entry.rpartition(_KEY_BEGINS)
    return rest + b"]", b'"' + key[:-1]


@functools.lru_cache(maxsize=64)
def end_of_turn(stop_reason: str) -> bytes:
    """Return the entry with the reason why the turn of a prompt with a key, so of version 2, has ended."""
    return b"%b%b}]" % (_END, codec.encode(stop_reason))


def stop_reason_in(entry: bytes) -> str | None:
    """Return why a turn has ended, if the entry is an `end_of_turn`; None for any other."""
    if not entry.startswith(_END):
        return None
    fields = cast("dict[str, Any]", codec.loads(update_in(entry)[1]))  # an author's state may say more
    return str(fields["stopReason"])


def is_of_user(entry: bytes) -> bool:
    """Whether an entry is a message of the user, or a chunk of one."""
    return b'"user_message' in entry[:_HEAD]


def update_in(entry: bytes) -> tuple[int, bytes]:
    """The version of an entry, and its update as JSON."""
    if entry[:1] != _MARKED:
        return 1, entry
    if has_key(entry):
        entry, _ = _without_key(entry)
    version, comma, rest = entry[1:].partition(b",")
    if not comma or not version.strip().isdigit() or rest[-1:] != b"]":
        raise damaged("an entry has no version")
    return int(version), rest[:-1]


def read(entry: bytes) -> Update:
    """The update of an entry; raises StoreError if it is malformed, or of a version that Accord does not know."""
    version, update = update_in(entry)
    try:
        found: Update = _reader(version)(update)
    except DecodeError as error:
        raise damaged(str(error)) from error
    return found


def _reader(version: int) -> Callable[[bytes], Any]:
    if version == 1:
        return _read_first
    if version == 2:
        return _read_second
    raise StoreError(
        "newer_format", f"the session has updates of protocol version {version}, and this Accord knows 1 and 2"
    )


def _read_first(update: bytes) -> Any:
    return codec.decode(update, v1.SessionUpdate)


def _read_second(update: bytes) -> Any:
    from accord.schema import v2

    return codec.decode(update, v2.SessionUpdate)


def damaged(why: str) -> StoreError:
    """The error for a record that cannot be read."""
    return StoreError("damaged", f"the store contains a malformed update: {why}")


# A first look at a record: the last entry that changes each thing in it. A replay then tells a thing once it is final.
#
# A replay sends each message and each tool call once, in its final form, and in the order in which they began. Without
# this look it would have to hold the whole session: any entry might still change the first message. With it, a replay
# holds only what has begun and is not final, however long the session is.


Key: TypeAlias = tuple[str, str]
"""The kind of something in a session, and its id."""

_CHUNKS = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}
_WHOLE = {"user_message": "user", "agent_message": "agent", "agent_thought": "thought"}
"""By the tags of updates: the speaker of a whole message; version 1 has only chunks."""

KINDS = {
    "tool_call": ("call", "tool_call_id"),
    "tool_call_update": ("call", "tool_call_id"),
    "tool_call_content_chunk": ("call", "tool_call_id"),
    "terminal_update": ("terminal", "terminal_id"),
    "terminal_output_chunk": ("terminal", "terminal_id"),
    "compaction_update": ("compaction", "compaction_id"),
    "compaction_summary_chunk": ("compaction", "compaction_id"),
    "subagent_update": ("subagent", "session_id"),
    "session_message": ("session_message", "message_id"),
    "session_message_chunk": ("session_message", "message_id"),
}
"""By the tags of updates: the kind of their subject, and the field with its id."""


class _Glance(msgspec.Struct, rename="camel"):
    """The fields of an update that identify its subject."""

    session_update: str
    message_id: Any = None
    tool_call_id: Any = None
    terminal_id: Any = None
    compaction_id: Any = None
    session_id: Any = None


_glance = msgspec.json.Decoder(_Glance).decode


class Survey:
    """Until which entry each thing in a record changes."""

    def __init__(self) -> None:
        self.count = 0
        """The number of entries."""
        self.last: dict[Key, int] = {}
        """The number of the last entry that changes something."""
        self.replaced: dict[Key, int] = {}
        """The number of the last entry that may replace a message's content; later ones append to it."""
        self._current: Key | None = None
        """The message that a chunk without an id continues, if the message has an id."""

    def add(self, entry: bytes) -> None:
        """Examine the next entry."""
        version, update = update_in(entry)
        seen = _seen(update)
        tag = seen.session_update
        if (speaker := _CHUNKS.get(tag) or (_WHOLE.get(tag) if version != 1 else None)) is not None:
            key = self._message(speaker, seen.message_id, version)
            if key is not None:
                self.last[key] = self.count
                if tag in _WHOLE:
                    self.replaced[key] = self.count
        elif (row := KINDS.get(tag)) is not None:
            kind, field = row
            key = kind, str(getattr(seen, field))
            if kind == "call" and key not in self.last:
                self._current = None
            self.last[key] = self.count
        self.count += 1

    def _message(self, speaker: str, message_id: Any, version: int) -> Key | None:
        """Return the message that an update is about, by the rules of the timeline; None if it has no id."""
        if not isinstance(message_id, str):
            if self._current is not None and self._current[0] != speaker:
                self._current = None
            return self._current
        key = speaker, message_id
        if key not in self.last or version != 1:
            self._current = key
        return key


class CutPlaces:
    """Where a record can be cut: before each message of the user, and after each message of the agent.

    A message that the agent changes after the user has spoken again counts as it was before that.
    """

    def __init__(self) -> None:
        self.lengths: dict[Key, int] = {}
        """How many entries remain after the cut, by the speaker and the id of the message."""
        self._growing: set[Key] = set()
        """The messages of the agent after which no message of the user has followed yet."""

    def add(self, entry: bytes, number: int) -> None:
        """Examine the next entry of the session itself, the entry with this number in the record."""
        version, update = update_in(entry)
        seen = _seen(update)
        speaker = _CHUNKS.get(seen.session_update) or (_WHOLE.get(seen.session_update) if version != 1 else None)
        if speaker not in ("user", "agent") or not isinstance(seen.message_id, str):
            return
        key = speaker, seen.message_id
        if key not in self.lengths:
            if speaker == "user":
                self.lengths[key] = number
                self._growing.clear()
            else:
                self._growing.add(key)
        if key in self._growing:
            self.lengths[key] = number + 1


def _seen(update: bytes) -> _Glance:
    try:
        return _glance(update)
    except codec.REFUSALS:
        pass
    try:
        plain = codec.loads(update)
    except DecodeError as error:
        raise damaged(str(error)) from error
    if not isinstance(plain, dict):
        raise damaged("an update is not an object")
    fields = cast("dict[str, Any]", plain)
    tag = fields.get("sessionUpdate")
    return _Glance(
        tag if isinstance(tag, str) else "", *(fields.get(wire) for wire in _Glance.__struct_encode_fields__[1:])
    )


# `FoldedRecord`: the final state of a session's record, with everything that its replay needs.
#
#     entries ──▶ SessionState          messages, tool calls, settings, as every reader of a session sees them
#             └─▶ order                 what stands where: also compactions, subagents, and unknown updates
#             └─▶ latest                the last update of each kind that replaces the one before
#
# The state says what there is. The order says where it stands in the conversation. The latest updates are replayed as
# they came, so that what the state does not show, such as their `_meta`, is not lost.


Place: TypeAlias = int | Key | Unknown
"""One place of the replay: an entry of the timeline, something with an id, or an unknown update."""

_WITH_ID = {tag: row for tag, row in KINDS.items() if row[0] != "call"}
"""By the tags of updates: things that have an id and are shown beside the timeline."""

_REPLACES = frozenset(("config_option_update", "current_mode_update"))
"""The tags of updates that replace the one before."""


class FoldedRecord:
    """The final state of a record's entries so far."""

    def __init__(self) -> None:
        self.state = SessionState()
        """The entries, folded."""
        self.order: list[Place] = []
        """The parts of the conversation, in the order in which they began."""
        self.latest: dict[str, Any] = {}
        """The last update of each kind that replaces the one before, by its tag."""
        self.plans: dict[PlanId, Any] = {}
        """The last update of each plan with an id; the latest is the last."""
        self._known: set[Key] = set()

    def add(self, update: Update) -> None:
        """Fold in the next entry."""
        if getattr(update, "as_update", None) is not None:
            update = self.state.as_read(update)
        before = len(self.state)
        self.state.add(update)
        if len(self.state) > before:
            self.order.append(before)
        elif isinstance(update, Unknown):
            if self.state.unknown and self.state.unknown[-1] is update:
                self.order.append(update)
        else:
            self._note(update)

    def _note(self, update: Any) -> None:
        tag = update.__struct_config__.tag
        if (row := _WITH_ID.get(tag)) is not None:
            kind, field = row
            key = kind, getattr(update, field)
            if key not in self._known:
                self._known.add(key)
                self.order.append(key)
        elif tag in _REPLACES:
            self.latest[tag] = update
        elif tag == "plan_update":
            plan_id = plan_id_of(update.plan)
            self.plans.pop(plan_id, None)
            self.plans[plan_id] = update
        elif tag == "plan_removed":
            self.plans.pop(update.plan_id, None)
