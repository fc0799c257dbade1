"""An agent of version 2 without a fault, in a few lines of the standard library; its argument names a fault."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""

OPTION = {
    "configId": "model",
    "name": "Model",
    "type": "select",
    "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}],
}

sending = threading.Lock()
numbers = itertools.count()


class Session:
    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.history: list[tuple[str, str, str]] = []
        self.cancelled = threading.Event()
        self.working = threading.Lock()
        self.cancels = 0
        self.is_closed = False
        self.state = "idle"
        self.keys: dict[str, str] = {}
        self.pair = threading.Barrier(2)
        self.model = "big"


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


sessions: dict[str, Session] = {}


def send(**message: Any) -> None:
    with sending:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(session: str, kind: str, /, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def message(session: str, by: str, given: str, text: str) -> None:
    update(session, f"{by}_message", messageId=given, content=[{"type": "text", "text": text}])


def state(name: str, session: Session, told: str, **fields: Any) -> None:
    session.state = told
    update(name, "state_update", state=told, **fields)


def initialize(params: dict[str, Any]) -> Any:
    if FAULT == "speaks version 1 only":
        return {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "old", "version": "1"}}
    if params["protocolVersion"] < 2:
        raise Refused(-32022, "Unsupported protocol version")
    info = {"name": "faulty", "version": "1"}
    offers: dict[str, Any] = {"delete": {}, "fork": {}, "mcp": {"stdio": {}}, "options": {}, "prompt": {"skill": {}}}
    return {"protocolVersion": 2, "capabilities": {"session": offers}, "info": info}


def find(params: dict[str, Any]) -> Session:
    session = sessions.get(params["sessionId"])
    if session is None:
        raise Refused(-32002, "no such session")
    return session


def new(params: dict[str, Any]) -> Any:
    name = f"s{next(numbers)}"
    made = Session(params["cwd"])
    wanted = {it["configId"]: it["value"] for it in params.get("configOptions", [])}
    if len(wanted) < len(params.get("configOptions", [])) and FAULT != "takes an option twice":
        raise Refused(-32602, "an option is given twice")
    if wanted.keys() - {"model"} and FAULT == "refuses unknown options":
        raise Refused(-32602, "no such option")
    if wanted.get("model") in ("big", "small") and FAULT != "ignores initial options":
        made.model = wanted["model"]
    sessions[name] = made
    return {"sessionId": name, "configOptions": options(made.model)}


def options(model: str) -> Any:
    return [{**OPTION, "currentValue": model}]


def set_option(params: dict[str, Any]) -> Any:
    if params["value"] not in ("big", "small"):
        raise Refused(-32602, "no such value")
    find(params).model = params["value"]
    return {"configOptions": options(params["value"])}


def options_before(params: dict[str, Any]) -> Any:
    if params.get("sessionId") not in (None, *sessions) and FAULT != "has options of any session":
        raise Refused(-32002, "no such session")
    if FAULT == "opens a session to tell its options":
        new(params)
    return {"configOptions": options("small" if FAULT == "has other options before a session" else "big")}


def resume(params: dict[str, Any]) -> Any:
    session, replay = find(params), params.get("replayFrom")
    if replay is not None and replay["type"] != "start" and FAULT != "replays from anywhere":
        raise Refused(-32602, "unknown cursor")
    session.is_closed = False
    name, works = params["sessionId"], session.working.locked()
    if FAULT == "ends the work at a resume" and works:
        session.cancelled.set()
        session.working.acquire()
        session.working.release()
    for by, given, text in session.history if replay is not None and replay["type"] == "start" else []:
        message(name, by, given, text)
        if FAULT == "tells of work in the replay" and works:
            update(name, "state_update", state=session.state)
    if is_marked(session, replay):
        update(name, "replay_complete")
    if FAULT == "replays after the mark":
        message(name, "agent", "late", "Done.")
    if FAULT != "tells no state":
        update(name, "state_update", state="idle" if FAULT == "takes a resumed session for idle" else session.state)
    return {}


def is_marked(session: Session, replay: Any) -> bool:
    match FAULT:
        case "marks no end of a replay":
            return False
        case "marks no end of an empty replay":
            return replay is not None and bool(session.history)
        case "marks an end without a replay":
            return True
        case _:
            return replay is not None


def fork(params: dict[str, Any]) -> Any:
    session, cursor = find(params), params.get("cursorId")
    places = [place for place, (_, given, _) in enumerate(session.history, 1) if given == cursor]
    if cursor is not None and not places and FAULT != "forks at any cursor":
        raise Refused(-32602, "unknown cursor")
    made = new(params)
    length = places[0] if places and FAULT != "copies all at a cursor" else None
    sessions[made["sessionId"]].history = session.history[:length]
    return made


def listed(params: dict[str, Any]) -> Any:
    if "cursor" in params:
        raise Refused(-32602, "unknown cursor")
    found = [(name, it) for name, it in sessions.items() if params.get("cwd") in (None, it.cwd)]
    return {"sessions": [{"sessionId": name, "cwd": session.cwd} for name, session in found]}


def close(params: dict[str, Any]) -> Any:
    session = sessions.get(params["sessionId"])
    if session is None:
        if FAULT == "refuses to close nothing":
            raise Refused(-32002, "no such session")
        return {}
    session.is_closed = True
    session.cancelled.set()
    with session.working:  # the last update stands before the answer
        return {}


def delete(params: dict[str, Any]) -> Any:
    sessions.pop(params["sessionId"], None)
    return {}


def prompt(number: Any, params: dict[str, Any]) -> None:
    session, name = find(params), params["sessionId"]
    if not params["prompt"] and FAULT != "takes an empty prompt":
        raise Refused(-32602, "empty")
    if any(block["type"] == "skill" for block in params["prompt"]) and FAULT != "takes any skill":
        raise Refused(-32602, "no such skill")
    key = params.get("idempotencyKey")
    if key is not None and not (isinstance(key, str) and 1 <= len(key) <= 255) and FAULT != "takes any key":
        raise Refused(-32602, "the idempotencyKey must be a text of 1 to 255 characters")
    early = session.keys.get(key)
    if FAULT == "looks for keys too early" and key == "accord-check-pair":
        session.pair.wait(60)
    before = session.cancels
    if FAULT == "is busy" and session.working.locked():
        raise Refused(-32600, "busy")
    with session.working:
        if session.cancels > before:
            raise Refused(-32603 if FAULT == "fails waiting prompts" else -32800, "cancelled")
        earlier = early if FAULT == "looks for keys too early" else session.keys.get(key)
        if earlier is not None and FAULT != "knows no keys":
            send(id=number, result={"messageId": earlier})
        else:
            work(number, session, name, key, "".join(block.get("text", "") for block in params["prompt"]))


def work(number: Any, session: Session, name: str, key: Any, text: str) -> None:
    """Insert the message, do the work, and say how it ended."""
    session.cancelled.clear()
    mine, answer = f"u{next(numbers)}", f"a{next(numbers)}"
    if FAULT != "echoes nothing":
        message(name, "user", mine, text)
    session.history.append(("user", mine, text))
    if key is not None:
        session.keys[key] = mine
    send(id=number, result={"messageId": mine})
    if FAULT != "never runs":
        state(name, session, "running")
    reason: str | None = "end_turn"
    if text == "slow":
        session.cancelled.wait(60)
        reason = "cancelled" if FAULT != "ends a cancelled turn as done" else "end_turn"
        threading.Event().wait(1.0 if FAULT == "ends a cancelled turn as done" else 0)
    else:
        message(name, "agent", answer, "Done.")
        session.history.append(("agent", answer, "Done."))
        anchor = {"type": "agent_message", "messageId": answer, "position": "after"}
        update(name, "cursor_update", cursorId=answer, anchor=anchor, capabilities={"fork": {}})
    if FAULT == "gives no reason":
        reason = None
    state(name, session, "idle", **({} if reason is None else {"stopReason": reason}))


METHODS = {
    "initialize": initialize,
    "session/new": new,
    "session/options": options_before,
    "session/set_config_option": set_option,
    "session/resume": resume,
    "session/fork": fork,
    "session/list": listed,
    "session/close": close,
    "session/delete": delete,
}


def unknown(method: str) -> None:
    if method == "tool_call/cancel" and FAULT != "cannot cancel tools":
        raise Refused(-32602, "no such tool call")
    raise Refused(-32601, f"Method not found: {method}")


def serve(asked: dict[str, Any]) -> None:
    number, method, params = asked["id"], asked["method"], asked.get("params") or {}
    try:
        if method == "session/prompt":
            prompt(number, params)
        elif method in METHODS:
            send(id=number, result=METHODS[method](params))
        else:
            unknown(method)
    except Refused as refused:
        send(id=number, error={"code": refused.code, "message": str(refused)})


def received(line: bytes) -> None:
    try:
        asked = json.loads(line)
    except ValueError:
        send(id=None, error={"code": -32700, "message": "Parse error"})
        return
    if not isinstance(asked, dict) or not isinstance(asked.get("method", ""), str):
        send(id=None, error={"code": -32600, "message": "Invalid request"})
    elif "method" not in asked:
        return
    elif "id" not in asked:
        session = sessions.get(asked.get("params", {}).get("sessionId", ""))
        if asked["method"] == "session/cancel" and session is not None:
            session.cancels += 1
            session.cancelled.set()
    elif asked["method"] in ("session/prompt", "session/close"):
        threading.Thread(target=serve, args=(asked,), daemon=True).start()
    else:
        serve(asked)


def main() -> None:
    for line in sys.stdin.buffer:
        received(line)
    os._exit(0)


main()
