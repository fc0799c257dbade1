"""Functions with which a shared conversation reads and writes messages. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from accord.engine.incoming_requests import session_of
from accord.errors import INVALID_REQUEST, NOT_FOUND, AccordError, DecodeError
from accord.jsonrpc import wire_messages
from accord.jsonrpc.line_frames import RequestId
from accord.jsonrpc.wire_messages import NotificationFrame, RequestFrame, ResponseFrame
from accord.schema import codec, v1
from accord.schema.capabilities import CURSORS, WATCH, Capabilities
from accord.session.replay_scan import Version, marked
from accord.trace.meaning import body_of, items_of, object_in

CANCEL_REQUEST = "$/cancel_request"

_CHANGING = (b"current_mode_update", b"config_option_update", b"available_commands_update")

HANDED_OVER = "session_info_update"
"""The kind of update, an empty one, that ends a watch because the session is opened again on the same connection."""

REPLAY_COMPLETE = "replay_complete"

SHARED_CAPABILITIES = frozenset({"session", "elicitation", "subagents", "plan", "_meta"})
"""The capabilities that clients have for each other: not its files, and not its terminals."""


def params_of(frame: bytes) -> dict[str, Any]:
    """The params of this notification."""
    message = wire_messages.parse(frame)
    return object_in(message.params) if isinstance(message, NotificationFrame) else {}


def version_in(params: dict[str, Any]) -> int:
    """The protocol version in the params or the result of `initialize`."""
    version = params.get("protocolVersion")
    return version if isinstance(version, int) else 1


def watches(params: dict[str, Any]) -> bool:
    """Whether a client requests to open a session only to watch it."""
    return body_of(params.get("_meta")).get(WATCH) is True


def without_watching(params: dict[str, Any]) -> bytes:
    """Return the params of a request to open a session, for an agent that knows nothing of watching."""
    meta = {key: value for key, value in body_of(params.get("_meta")).items() if key != WATCH}
    kept = {key: value for key, value in params.items() if key != "_meta"}
    return codec.encode({**kept, "_meta": meta} if meta else kept)


def announces_watching(answer: ResponseFrame) -> bool:
    """Whether the agent's answer to `initialize` declares that sessions can be watched."""
    return body_of(object_in(answer.result).get("_meta")).get(WATCH) is True


def ends_watching(frame: bytes) -> bool:
    """Whether this update ends its receiver's watch of the session."""
    return WATCH.encode() in frame and body_of(params_of(frame).get("_meta")).get(WATCH) is False


def update(session: str, body: dict[str, Any], **more: Any) -> bytes:
    """Write an update of this session."""
    params = {"sessionId": session, "update": body, **more}
    return wire_messages.encode_notification("session/update", codec.encode(params))


def watch_over(session: str) -> bytes:
    """Return an update that only ends a client's watch of the session: another opening of it follows."""
    return update(session, {"sessionUpdate": HANDED_OVER}, _meta={WATCH: False})


def wants_replay(method: str, params: dict[str, Any]) -> bool:
    """Whether a client that opens a session wants its past: `session/load`, or a resume with `replayFrom`."""
    return method == "session/load" or params.get("replayFrom") is not None


def replays_from_start(method: str, params: dict[str, Any]) -> bool:
    """Whether the past that a client wants begins at the start, the only supported place."""
    return method == "session/load" or body_of(params.get("replayFrom")).get("type") == "start"


def client_capabilities(params: bytes) -> Capabilities:
    """Return the capabilities of a client of version 1 in these params of `initialize`."""
    try:
        return Capabilities(codec.convert(object_in(params).get("clientCapabilities"), v1.ClientCapabilities))
    except DecodeError:
        return Capabilities()


ONLY_FOR = {"cursor_update": "cursors", "prompt_suggestions_update": "promptSuggestions", "notice": "notices"}
"""Updates for clients that declared this capability of sessions in `initialize`, by their tags.

In version 2 every client shows notices, and cursors are asked for in `_meta`.
"""


def shown_by(params: dict[str, Any]) -> frozenset[str]:
    """Return which updates of `ONLY_FOR` a client shows, by its params of `initialize`, in either version."""
    first, second = (body_of(params.get(name)) for name in ("clientCapabilities", "capabilities"))
    declared = body_of(first.get("session")) | body_of(second.get("session"))
    if version_in(params) != 1:  # every client of version 2 shows notices
        declared |= {"notices": {}} | ({"cursors": {}} if CURSORS in body_of(second.get("_meta")) else {})
    return frozenset(tag for tag, name in ONLY_FOR.items() if declared.get(name) not in (None, False))


def only_for(frame: bytes) -> str | None:
    """The tag of this update if only some clients get it."""
    return next((tag for tag in ONLY_FOR if tag.encode() in frame and is_update(frame, tag)), None)


def shared_initialize(params: dict[str, Any]) -> bytes:
    """Return the params of `initialize` without capabilities that only one client could have for the agent.

    All updates of `ONLY_FOR` are requested: a client that joins later may show what the first does not.
    """
    for name, asked in (("clientCapabilities", [*ONLY_FOR.values()]), ("capabilities", ["promptSuggestions"])):
        if name in params:
            offered = body_of(params[name])
            kept = {key: offered[key] for key in offered if key in SHARED_CAPABILITIES}
            session = body_of(kept.get("session"))
            shown: dict[str, Any] = {it: session.get(it) or {} for it in asked}
            params = {**params, name: {**kept, "session": {**session, **shown}}}
            if name == "capabilities":
                params[name]["_meta"] = {**body_of(kept.get("_meta")), CURSORS: {}}
    return codec.encode(params)


def announced(answer: ResponseFrame) -> ResponseFrame:
    """Return the agent's answer to `initialize`, which also declares that sessions can be watched here."""
    if answer.error is not None:
        return answer
    result = object_in(answer.result)
    declared = {**result, "_meta": {**body_of(result.get("_meta")), WATCH: True}}
    return ResponseFrame(answer.id, msgspec.Raw(codec.encode(declared)))


def user_messages(session: str, params: dict[str, Any]) -> Iterator[bytes]:
    """A prompt of version 1 as updates, for the clients that did not send it."""
    for block in items_of(params.get("prompt")):
        yield update(session, {"sessionUpdate": "user_message_chunk", "content": block})


def update_of(params: dict[str, Any]) -> dict[str, Any]:
    """The update in the params of `session/update`."""
    return body_of(params.get("update"))


def may_change_answers(frame: bytes) -> bool:
    """Whether this update may change the answer to a client that opens the session; most are text."""
    return b"_update" in frame and any(kind in frame for kind in _CHANGING)


def shared_change(call: RequestFrame, answer: ResponseFrame) -> dict[str, Any] | None:
    """Return a client's change by this request as an update for the others: the agent answers only that client."""
    if answer.error is not None:
        return None
    if call.method == "session/set_mode":
        return {"sessionUpdate": "current_mode_update", "currentModeId": object_in(call.params).get("modeId")}
    if call.method == "session/set_config_option" and "configOptions" in (result := object_in(answer.result)):
        return {"sessionUpdate": "config_option_update", "configOptions": result["configOptions"]}
    return None


def is_update(frame: bytes, tag: str) -> bool:
    """Whether this is an update with this tag."""
    return tag.encode() in frame and update_of(params_of(frame)).get("sessionUpdate") == tag


def state_in(frame: bytes, session: str) -> str | None:
    """Return the state of this session in an update of version 2; None if it has none."""
    if b"state_update" not in frame:
        return None
    params = params_of(frame)
    update = update_of(params)
    is_state = update.get("sessionUpdate") == "state_update" and params.get("sessionId") == session
    return str(update.get("state")) if is_state else None


def replayed(session: str, updates: Iterable[bytes], version: Version, capabilities: Capabilities) -> list[bytes]:
    """Return these updates of a session and its subagents in the form of a replay; raises AccordError if that fails."""
    from accord.agent.replay_tree import SessionReplay, belongs_to, enclosed, update_head

    entries: list[bytes] = []
    for frame in updates:
        message = wire_messages.parse(frame)
        assert isinstance(message, NotificationFrame), "only updates are kept"
        named, params = str(session_of(message.params)), message.params or b"{}"
        entry = marked(codec.update_json(params), version)
        entries.append(entry if named == session else enclosed(named, entry))
        child = update_of(object_in(params)).get("sessionId") if b"subagent" in frame else None
        if child is not None and not belongs_to(str(child), session):
            raise AccordError("a subagent whose id says nothing of its session")
    replay = SessionReplay(session, version, capabilities)
    for entry in entries:
        replay.look(entry)
    for entry in entries:
        replay.add(entry)
    replayed = [*replay.now(), *replay.rest()]
    return [b"%b%b}}" % (update_head(subagent or session), codec.encode(update)) for subagent, update in replayed]


def says_gone(answer: ResponseFrame, session: str) -> bool:
    """Whether an error means that the agent no longer has this session open: it may be open elsewhere."""
    if answer.error is None:
        return False
    code, data = answer.error.code, body_of(answer.error.data)
    is_gone = code == NOT_FOUND or (code == INVALID_REQUEST and data.get("reason") == "taken")
    return is_gone and data.get("sessionId") == session


def answered(answer: ResponseFrame, request_id: RequestId) -> bytes:
    """Return this answer with another id."""
    if answer.error is None:
        return wire_messages.encode_response(request_id, b"null" if answer.result is None else answer.result)
    return wire_messages.encode_error(request_id, answer.error.code, answer.error.message, answer.error.data)


def cancel_request(request_id: RequestId) -> bytes:
    """The notification that a request is not waited for any more."""
    return wire_messages.encode_notification(CANCEL_REQUEST, codec.encode({"requestId": request_id}))
