"""What `RecordedAgent` and `RecordedClient` share: a trace as a conversation, matching by content, ids renamed. PURE.

A replay that only repeats lines breaks with the first difference: another id, another order, another folder. So a
request is matched to the recorded one of its method that is most like it: its texts weigh most, then its session, then
whether the recorded one was used already. Ids of sessions and terminals, and the session's folder, are renamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import msgspec

from accord.errors import AccordError
from accord.trace import TraceEvent, read, read_header
from accord.trace.meaning import body_of
from accord.trace.trace_entries import Entry, entries

if TYPE_CHECKING:
    from pathlib import Path

Source: TypeAlias = "str | Path"
NOT_COMPARED = ("sessionId", "terminalId", "cwd", "_meta", "type")
COMPARED = 2_000
"""Characters of a message that are compared with others."""


class Said(msgspec.Struct, eq=False):
    """A recorded message."""

    number: int
    """Its place in the trace."""
    time: float
    by: Literal["client", "agent"]
    kind: str
    method: str
    session: str
    message: Mapping[str, Any]
    request: Said | None = None
    """Of an answer: the request."""
    answer: Said | None = None
    """Of a request: the answer, if there was one."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The params of a request or a notification."""
        return body_of(self.message.get("params"))

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of an answer."""
        return body_of(self.message.get("result"))


def conversation(source: Source | Sequence[TraceEvent]) -> list[Said]:
    """The messages between client and agent in a trace.

    Of several connections it is the first. Of a chain of proxies it is what the client sees: the whole chain as one
    agent. Raises AccordError if the trace has no request of a client.
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        role, events = "tap", list(source)
    else:
        role, events = read_header(source).role, list(read(source))
    found = _said(entries(_first_link(events)), flips=role == "agent")
    if not any(it.by == "client" and it.kind == "request" for it in found):
        raise AccordError("the trace has no request of a client, so there is nothing to replay")
    return found


def _first_link(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    frames = [event for event in events if event.frame is not None]
    links = [event.link for event in frames if event.link is not None]
    if links:
        frames = [event for event in frames if event.link == links[0]]
    client = next((event.hop[0] for event in frames if event.hop is not None), None)
    return frames if client is None else [event for event in frames if event.hop and client in event.hop]


def _said(found: Iterable[Entry], *, flips: bool) -> list[Said]:
    by_number: dict[int, Said] = {}
    for entry in found:
        if entry.kind not in ("request", "notification", "answer"):
            continue
        is_clients = (entry.event.direction == "out") != flips
        message = body_of(_decoded(entry.event.frame or b""))
        request = by_number.get(entry.request.number) if entry.request is not None else None
        said = Said(
            entry.number,
            entry.event.time,
            "client" if is_clients else "agent",
            entry.kind,
            entry.method,
            entry.session,
            message,
            request,
        )
        if request is not None:
            request.answer = said
        if entry.kind != "answer" or request is not None:  # an answer to nothing is not repeated
            by_number[entry.number] = said
    return list(by_number.values())


SAME_SESSION, UNUSED = 0.25, 0.1
"""What a recorded request gains in likeness by its session, and by not being used yet: a different text weighs more."""


def best(method: str, params: Mapping[str, Any], among: Iterable[Said], session: str, used: set[int]) -> Said | None:
    """The recorded request that is most like this one; None if none has its method."""
    text = _compared(params)

    def likeness(it: Said) -> tuple[float, int]:
        content = SequenceMatcher(None, _compared(it.params), text, autojunk=False).quick_ratio()
        return content + SAME_SESSION * (it.session == session) + UNUSED * (it.number not in used), -it.number

    return max((it for it in among if it.method == method), key=likeness, default=None)


def _compared(value: Any) -> str:
    """The texts in a message, without the ids and folders that differ from run to run."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return " ".join(_compared(member) for key, member in members if key not in NOT_COMPARED)[:COMPARED]
    if isinstance(value, list):
        return " ".join(_compared(member) for member in cast("list[Any]", value))[:COMPARED]
    return str(value)[:COMPARED]


class Names:
    """The ids and the folder of a recording, and what they are called now."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._then: dict[str, str] = {}
        self._folders: list[tuple[str, str]] = []

    def name(self, then: Any, now: Any) -> None:
        """From now on, this recorded id has this name."""
        if isinstance(then, str) and isinstance(now, str):
            self._now[then] = now
            self._then.setdefault(now, then)

    def place(self, then: Any, now: Any) -> None:
        """Paths in this recorded folder are now in this one."""
        if isinstance(then, str) and isinstance(now, str) and then.rstrip("/"):
            self._folders.append((then.rstrip("/"), now.rstrip("/")))

    def then(self, now: str) -> str:
        """The recorded id with this name."""
        return self._then.get(now, now)

    def renamed(self, value: Any) -> Any:
        """A recorded JSON value with the names of now."""
        if isinstance(value, str):
            return self._now.get(value) or self._moved(value)
        if isinstance(value, dict):
            return {key: self.renamed(member) for key, member in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self.renamed(member) for member in cast("list[Any]", value)]
        return value

    def _moved(self, text: str) -> str:
        for then, now in self._folders:
            if text == then or text.startswith(f"{then}/"):
                return now + text[len(then) :]
            if text.startswith(f"file://{then}/"):
                return f"file://{now}{text[len(then) + 7 :]}"
        return text


def _decoded(frame: bytes) -> Any:
    try:
        return json.loads(frame.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
