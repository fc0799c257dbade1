"""How the updates of subagents are kept in the record of their session, and replayed. PURE.

A subagent's session has no record of its own: it begins, is loaded and is deleted with the session that started it. So
each of its updates is kept among those of that session, in an *envelope* that names the subagent:

    {"sessionUpdate":"_accord/of_subagent","sessionId":"<subagent>","update":{...}}

A replay opens the envelopes: what a subagent said goes to the client under its id, after what announces it. The ids
begin with the id of the session, so a fork, which has a copy of the record, does not replay the subagents of its
source: they belong to another session.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from accord.errors import INTERNAL_ERROR
from accord.schema import v1
from accord.session import SessionState

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


def enclosed(subagent: str, entry: bytes) -> bytes:
    """An entry of this subagent, as the record keeps it."""
    return b"%b%b%b%b}" % (_BEGINNING, msgspec.json.encode(subagent), _MIDDLE, entry)


def opened(kept: bytes) -> tuple[str | None, bytes]:
    """The subagent that a kept entry is from, None for the session itself, and the entry."""
    if not kept.startswith(_BEGINNING):
        return None, kept
    subagent, _, entry = kept[len(_BEGINNING) : -1].partition(_MIDDLE)
    return msgspec.json.decode(subagent, type=str), entry


def ended_by_a_crash(state: SessionState) -> Iterator[v1.SubagentUpdate]:
    """What ends the subagents that were at work when their agent ended."""
    problem = v1.Error(INTERNAL_ERROR, "The agent ended while the subagent worked")
    for subagent in state.subagents.values():
        if isinstance(subagent.state, v1.RunningStateUpdate | v1.RequiresActionStateUpdate):
            yield v1.SubagentUpdate(subagent.session_id, state=v1.IdleStateUpdate("error", None, problem))
