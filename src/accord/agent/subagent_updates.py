"""How the updates of subagents are kept in the record of their session, and replayed. PURE.

A subagent's session has no record of its own: it begins, is loaded and is deleted with the session that started it. So
each of its updates is kept among those of that session, in an *envelope* that names the subagent:

    {"sessionUpdate":"_accord/of_subagent","sessionId":"<subagent>","update":{...}}

A replay opens the envelopes: each update goes to the client under the subagent's id, in the order in which it was said.
The ids begin with the id of the session, so a fork, which has a copy of the record, does not replay the subagents of
its source: they belong to another session.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from accord.errors import INTERNAL_ERROR
from accord.schema import codec, v1

OF_SUBAGENT = "_accord/of_subagent"
_BEGINNING = f'{{"sessionUpdate":"{OF_SUBAGENT}","sessionId":'.encode()
_MIDDLE = b',"update":'


def subagent_id(session_id: str, own: str) -> v1.SessionId:
    """The id of a subagent's session; `own` is what nothing else in the session is called."""
    return v1.SessionId(f"{session_id}/{own}")


def belongs_to(subagent: str, session_id: str) -> bool:
    """Whether the session with this id, or a subagent of it, has started the subagent."""
    return subagent.startswith(f"{session_id}/")


def session_of(subagent: str) -> str:
    """The id of the session that a subagent belongs to; a session's own id as it is."""
    return subagent.partition("/")[0]


def update_head(session_id: str) -> bytes:
    """How the notification of an update of this session begins; two closing braces end it."""
    identifier = msgspec.json.encode(session_id)
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":' % identifier


def enclosed(subagent: str, update: bytes) -> bytes:
    """An update of this subagent, as the record keeps it."""
    return b"%b%b%b%b}" % (_BEGINNING, msgspec.json.encode(subagent), _MIDDLE, update)


def is_enclosed(kept: bytes) -> bool:
    """Whether a kept update is one of a subagent."""
    return kept.startswith(_BEGINNING)


def opened(kept: bytes) -> tuple[str | None, bytes]:
    """The subagent that a kept update is from, None for the session itself, and the update."""
    if not is_enclosed(kept):
        return None, kept
    subagent, _, update = kept[len(_BEGINNING) : -1].partition(_MIDDLE)
    return msgspec.json.decode(subagent, type=str), update


class UnfinishedSubagents:
    """The subagents of a replayed session, and those that were still at work when their agent ended."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._started_by: dict[str, str | None] = {}

    def are_of_another_session(self, subagent: str | None, kind: str, update: bytes) -> bool:
        """Whether this update is from or about a subagent of the session that this one was forked from.

        An update about a subagent of this session is taken note of.
        """
        if subagent is not None and not belongs_to(subagent, self._session_id):
            return True
        if kind != "subagent_update":
            return False
        said = cast("dict[str, Any]", codec.loads(update))
        about = str(said.get("sessionId"))
        if belongs_to(about, self._session_id):
            self._note(subagent, about, said.get("state", msgspec.UNSET))
            return False
        return True

    def _note(self, parent: str | None, subagent: str, state: Any) -> None:
        match state:
            case {"state": "running" | "requires_action"}:
                self._started_by[subagent] = parent
            case msgspec.UNSET:
                pass
            case _:
                self._started_by.pop(subagent, None)

    def endings(self) -> list[tuple[str | None, v1.SubagentUpdate]]:
        """What ends them: the session or subagent that started each, and the update."""
        ended = v1.IdleStateUpdate("error", None, v1.Error(INTERNAL_ERROR, "The agent ended while the subagent worked"))
        return [
            (parent, v1.SubagentUpdate(v1.SessionId(subagent), state=ended))
            for subagent, parent in self._started_by.items()
        ]
