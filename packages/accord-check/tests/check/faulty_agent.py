"""An agent without a fault, in a few lines of the standard library; its argument names a fault that it then has.

It is written by hand, without Accord: a fault of Accord would otherwise be one of both sides.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
OPTION = {
    "id": "size",
    "name": "Size",
    "type": "select",
    "currentValue": "big",
    "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}],
}
KNOWN = ("session/cancel",)

sending = threading.Lock()
is_ending = threading.Event()
answers: dict[Any, queue.Queue[Any]] = {}
sessions: dict[str, Session] = {}
capabilities: dict[str, Any] = {}


class Session:
    def __init__(self, cwd: str, history: list[tuple[str, str]] | None = None) -> None:
        self.cwd = cwd
        self.history = history or []
        self.cancelled = threading.Event()
        self.was_cancelled = False
        self.is_closed = False
        self.is_answered = threading.Event()
        """Set while no slow prompt waits for its answer."""
        self.was_loaded = False
        self.was_cancelled_idle = False
        self.is_dead = False
        self.is_working = False
        self.prompts = 0
        """Prompts that have no answer yet."""


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def send(**message: Any) -> None:
    with sending:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(session: str, kind: str, /, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def say(session: str, text: str, by: str = "agent") -> None:
    update(session, f"{by}_message_chunk", content={"type": "text", "text": text})


def ask(method: str, params: Any) -> Any:
    number = len(answers)
    answers[number] = queue.Queue()
    send(id=number, method=method, params=params)
    return answers[number].get()


def initialize(params: dict[str, Any]) -> Any:
    asked = params["protocolVersion"]
    capabilities.update(params.get("clientCapabilities") or {})
    if FAULT == "refuses a version that it does not speak" and asked != 1:
        raise Refused(-32602, "unknown version")
    if FAULT == "refuses a client without capabilities" and asked == 1 and not capabilities:
        raise Refused(-32602, "capabilities are needed")
    return {
        "protocolVersion": asked if FAULT == "echoes any version" else 1,
        "agentCapabilities": {
            "loadSession": True,
            "mcpCapabilities": {"http": True},
            "sessionCapabilities": {name: {} for name in ("list", "close", "delete", "resume", "fork")},
        },
        "agentInfo": {"name": "faulty", "version": "1"},
        "authMethods": [],
    }


def new(params: dict[str, Any]) -> Any:
    if FAULT == "asks for a login":
        raise Refused(-32000, "Authentication required")
    if FAULT == "opens no session":
        raise Refused(-32603, "no session")
    if FAULT == "is disturbed by _meta" and params.get("_meta"):
        raise Refused(-32602, "unknown _meta")
    connect(params["mcpServers"])
    name = new_id()
    sessions[name] = Session(params["cwd"])
    return {"sessionId": name, "modes": MODES, "configOptions": [OPTION]}


def new_id() -> str:
    return f"s{os.getpid()}-{len(sessions)}"


def keep(name: str, session: Session) -> None:
    """Keep the past of a session in its folder, for a later process."""
    if FAULT == "keeps nothing before its end" and not is_ending.is_set():
        return
    file = Path(session.cwd) / f"kept-{name}.json"
    file.write_text(json.dumps(session.history))


def kept(name: str, cwd: str) -> Session | None:
    """A session that an earlier process kept."""
    file = Path(cwd) / f"kept-{name}.json"
    if FAULT == "forgets at its end" or not file.exists():
        return None
    return Session(cwd, [(by, text) for by, text in json.loads(file.read_text())])


def connect(servers: list[dict[str, Any]]) -> None:
    """Shake hands with the MCP servers of a session."""
    if servers and FAULT == "takes no servers":
        raise Refused(-32603, "no MCP here")
    if FAULT == "wants a type of each server" and any("type" not in server for server in servers):
        raise Refused(-32602, "type is missing")
    for server in servers[:1] if FAULT == "starts one server" else servers:
        reach(server) if server.get("type") == "http" else start(server)


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}


def start(server: dict[str, Any]) -> None:
    """Shake hands with an MCP server that is a program."""
    env = dict(os.environ) | {each["name"]: each["value"] for each in server["env"]}
    args = server["args"][:2] if FAULT == "starts servers without arguments" else server["args"]
    process = subprocess.Popen(
        [server["command"], *args], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO) + "\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdin.close()
    process.wait()


def reach(server: dict[str, Any]) -> None:
    """Shake hands with an MCP server over HTTP."""
    if FAULT == "refuses servers over HTTP":
        raise Refused(-32602, "no HTTP here")
    given = {} if FAULT == "forgets the headers" else {each["name"]: each["value"] for each in server["headers"]}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **given}
    with urlopen(Request(server["url"], json.dumps(HELLO).encode(), headers)) as answer:
        answer.read()


def resume(params: dict[str, Any]) -> Any:
    session = find(params)
    session.is_closed, session.is_dead = False, FAULT == "resumes into nothing"
    return {}


def fork(params: dict[str, Any]) -> Any:
    source, name = find(params), new_id()
    sessions[name] = Session(params["cwd"])
    sessions[name].is_dead = FAULT == "forks into nothing"
    source.is_dead = FAULT == "forgets the source of a fork"
    return {"sessionId": name}


def load(params: dict[str, Any]) -> Any:
    name = params["sessionId"]
    earlier = kept(name, params["cwd"])
    if name not in sessions and earlier is not None:
        sessions[name] = earlier
    if name not in sessions and FAULT == "loads what is not there":
        sessions[name] = Session(params["cwd"])
    session = find(params)
    if FAULT == "loads nothing":
        raise Refused(-32603, "cannot load")
    for by, text in session.history:
        if not (FAULT == "replays one side" and by == "user"):
            say(name, text, by)
    session.was_loaded = True
    return {}


def listed(params: dict[str, Any]) -> Any:
    if "cursor" in params and FAULT != "takes any cursor":
        raise Refused(-32602, "unknown cursor")
    if not params and FAULT == "lists nothing without params":
        raise Refused(-32602, "cwd is missing")
    cwd = params.get("cwd")
    found = [(name, it) for name, it in sessions.items() if cwd in (None, it.cwd) or FAULT == "lists all folders"]
    return {"sessions": [{"sessionId": name, "cwd": session.cwd} for name, session in found]}


def close(params: dict[str, Any]) -> Any:
    if FAULT != "lets work go on after a close":
        session = find(params)
        session.is_closed = True
        session.cancelled.set()
        if FAULT == "is done when a close arrives":
            session.is_answered.wait()
    return {}


def delete(params: dict[str, Any]) -> Any:
    if sessions.pop(params["sessionId"], None) is None and FAULT == "deletes once":
        raise Refused(-32002, "no such session")
    return {}


def set_mode(params: dict[str, Any]) -> Any:
    if FAULT == "keeps its mode":
        raise Refused(-32603, "no")
    return {}


def set_option(params: dict[str, Any]) -> Any:
    is_known = params["value"] in ("big", "small")
    if not is_known and FAULT != "takes any value":
        raise Refused(-32602, "unknown value")
    if is_known and FAULT == "keeps its options":
        raise Refused(-32603, "no")
    return {"configOptions": [OPTION]}


def prompt(params: dict[str, Any]) -> Any:
    session, name = find(params), params["sessionId"]
    texts = [block["text"] for block in params["prompt"] if block["type"] == "text"]
    if session.is_dead:
        raise Refused(-32603, "no such session any more")
    if FAULT == "serves one session" and any(other.is_working for other in sessions.values()):
        raise Refused(-32603, "busy")
    if FAULT == "serves one client":
        lock = Path(session.cwd) / "lock"
        if lock.exists() and lock.read_text() != str(os.getpid()):
            raise Refused(-32603, "another client is served")
        lock.write_text(str(os.getpid()))
    if FAULT == "dies in a turn":
        os._exit(7)
    if FAULT == "takes no links" and len(texts) < len(params["prompt"]):
        raise Refused(-32602, "text only")
    if FAULT == "takes no text":
        raise Refused(-32603, "no model")
    if session.was_cancelled and FAULT == "is broken by a cancel":
        session.was_cancelled = False
        raise Refused(-32603, "broken")
    if session.was_cancelled_idle and FAULT == "is broken by an idle cancel":
        raise Refused(-32603, "broken")
    if session.was_loaded and FAULT == "goes not on after a load":
        raise Refused(-32603, "broken")
    if FAULT == "reads files unasked" and not capabilities.get("fs"):
        ask("fs/read_text_file", {"sessionId": name, "path": f"{session.cwd}/notes.txt"})
    session.history.append(("user", texts[0]))
    keep(name, session)
    if texts[0] in ("slow", "check slow"):
        return slow(name, session)
    if texts[0] in ("edit", "check edit"):
        edit(name)
    say(name, "Done.")
    session.history.append(("agent", "Done."))
    keep(name, session)
    return {"stopReason": "end_turn"}


def slow(name: str, session: Session) -> Any:
    session.is_working = True
    session.is_answered.clear()
    say(name, "I begin.")
    session.history.append(("agent", "I begin."))
    patience = 2.0 if FAULT == "lets work go on after a close" else 60.0
    if FAULT == "never answers a cancelled prompt":
        threading.Event().wait()
    session.cancelled.wait(patience)
    if FAULT == "never answers the prompt of a closed session" and session.is_closed:
        threading.Event().wait()
    is_deaf = FAULT == "lets work go on after a close" and not session.cancelled.is_set()
    is_deaf = is_deaf or (FAULT == "is done when a close arrives" and session.is_closed)
    if not session.is_closed:
        if FAULT in ("stops late", "ends a cancelled turn as done"):
            threading.Event().wait(1.5)
        if FAULT == "fails when it is cancelled":
            raise Refused(-32603, "aborted")
        is_deaf = is_deaf or FAULT == "ends a cancelled turn as done"
    session.was_cancelled, session.is_working = True, False
    return {"stopReason": "end_turn" if is_deaf else "cancelled"}


def edit(name: str) -> None:
    update(name, "tool_call", toolCallId=f"t-{name}", title="Edit", kind="edit", status="pending")
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    options.append({"optionId": "no", "name": "No", "kind": "reject_once"})
    asking = {"sessionId": name, "toolCall": {"toolCallId": f"t-{name}"}, "options": options}
    if FAULT == "does not wait for permission":
        threading.Thread(target=ask, args=("session/request_permission", asking), daemon=True).start()
        while not answers:
            threading.Event().wait(0.01)
        update(name, "tool_call_update", toolCallId=f"t-{name}", status="completed")
        return
    answer = ask("session/request_permission", asking)
    allowed = answer["outcome"].get("optionId") == "yes"
    update(name, "tool_call_update", toolCallId=f"t-{name}", status="completed" if allowed else "failed")


def find(params: dict[str, Any]) -> Session:
    if params["sessionId"] not in sessions:
        raise Refused(-32002, "no such session")
    return sessions[params["sessionId"]]


METHODS = {
    "initialize": initialize,
    "session/new": new,
    "session/load": load,
    "session/resume": resume,
    "session/fork": fork,
    "session/list": listed,
    "session/close": close,
    "session/delete": delete,
    "session/set_mode": set_mode,
    "session/set_config_option": set_option,
    "session/prompt": prompt,
}


def unknown(method: str) -> None:
    raise Refused(-32600 if FAULT == "refuses with another code" else -32601, f"Method not found: {method}")


def serve(message: dict[str, Any]) -> None:
    number, method = message["id"], message["method"]
    late = FAULT == "says more after the answer" and method == "session/prompt"
    try:
        if method not in METHODS:
            if FAULT == "answers nothing custom" and method.startswith("_"):
                return
            if FAULT == "answers nothing unknown" and not method.startswith("_"):
                return
            unknown(method)
        result = METHODS[method](message.get("params") or {})
        if method == "session/prompt":
            prompted = find(message["params"])
            prompted.prompts -= 1
            prompted.cancelled.clear()
        send(id=str(number) if FAULT == "answers under another id" else number, result=result)
        if method == "session/prompt":
            prompted.is_answered.set()
    except Refused as refused:
        send(id=number, error={"code": refused.code, "message": str(refused)})
    if late:
        say(message["params"]["sessionId"], "One more thing.")


def told(message: dict[str, Any]) -> None:
    method = message["method"]
    session = sessions.get(message.get("params", {}).get("sessionId", ""))
    if method == "session/cancel" and session is not None:
        if session.prompts:
            session.cancelled.set()
        else:
            session.was_cancelled_idle = True
    elif FAULT == "answers notifications" and method not in KNOWN:
        send(id=None, error={"code": -32601, "message": "Method not found"})
    elif (FAULT == "dies of an unknown notification" and method.startswith("_")) or (
        FAULT == "dies of a dollar" and method.startswith("$/")
    ):
        os._exit(1)


def received(line: bytes) -> None:
    try:
        message = json.loads(line)
    except ValueError:
        if FAULT == "dies of bad input":
            os._exit(1)
        if FAULT != "is silent about bad input":
            code = -32600 if FAULT == "calls bad JSON invalid" else -32700
            send(id=None, error={"code": code, "message": "Parse error"})
        return
    if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
        if FAULT not in ("is silent about bad input", "is silent about what is no message"):
            send(id=None, error={"code": -32600, "message": "Invalid request"})
    elif "method" not in message:
        if message.get("id") in answers:
            answers[message["id"]].put(message.get("result"))
    elif "id" not in message:
        told(message)
    elif message["method"] == "session/prompt":
        if message["params"]["sessionId"] in sessions:
            sessions[message["params"]["sessionId"]].prompts += 1
        threading.Thread(target=serve, args=(message,), daemon=True).start()
    else:
        serve(message)


def outliving() -> subprocess.Popen[bytes]:
    """A process that does not end with its parent."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], stdin=subprocess.DEVNULL)


def main() -> None:
    if FAULT == "greets on stdout":
        print("Welcome!", flush=True)
    child = outliving() if FAULT in ("leaves a process", "leaves a process if it is killed") else None
    for line in sys.stdin.buffer:
        received(line)
    if child is not None and FAULT == "leaves a process if it is killed":
        child.kill()
        child.wait()
    is_ending.set()
    for name, session in sessions.items():
        keep(name, session)
    if FAULT == "ignores the end of its input":
        threading.Event().wait()
    os._exit(0)


main()
