"""A client without a fault, in a few lines of the standard library; its second argument names a fault that it then has.

    faulty_client.py AGENT [FAULT]

It sends one prompt, and ends. It is written by hand, without Accord: a fault of Accord would otherwise be one of both
sides.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

AGENT = sys.argv[1]
FAULT = sys.argv[2] if len(sys.argv) > 2 else ""
ROOT = Path.cwd().resolve()

agent = subprocess.Popen(
    [AGENT],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT if FAULT == "reads the log" else subprocess.DEVNULL,
)
sending = threading.Lock()
asked: dict[int, threading.Event] = {}
results: dict[int, Any] = {}
terminals: dict[str, Terminal] = {}
counted: list[str] = []
"""The kinds of the updates so far."""
question: list[Any] = []
"""The permission request whose answer the user thinks about."""


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], limit: int | None) -> None:
        self.process, self.limit = process, limit
        self.output = b""
        self.truncated = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        while data := self.process.stdout.read1(65_536):
            self.output += data
            if self.limit is not None and len(self.output) > self.limit:
                self.truncated = True
                first = FAULT == "keeps the first output"
                self.output = self.output[: self.limit] if first else self.output[-self.limit :]

    def said(self) -> str:
        return self.output.decode(errors="replace" if FAULT == "cuts characters" else "ignore")

    def status(self) -> Any:
        code = self.process.poll()
        if code is None:
            return None
        return {"exitCode": code} if code >= 0 else {"signal": f"SIG{-code}"}


def send(**message: Any) -> None:
    with sending:
        assert agent.stdin is not None
        try:
            agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            agent.stdin.flush()
        except OSError:
            leave(1)


def ask(method: str, params: Any, within: float = 60) -> Any:
    number = len(asked)
    asked[number] = threading.Event()
    send(id=number, method=method, params=params)
    if not asked[number].wait(within):
        leave(1)
    return results[number]


def leave(code: int) -> Any:
    os._exit(code)


def dies_of(fault: str) -> None:
    if fault == FAULT:
        leave(1)


def initialized(result: Any) -> None:
    capabilities = result.get("agentCapabilities", {})
    if result["protocolVersion"] != 1:
        if FAULT == "stays after a wrong version":
            time.sleep(60)
        if FAULT != "speaks any version":
            leave(1)
    if not capabilities:
        dies_of("needs capabilities")
    if "accordCheckFuture" in capabilities:
        dies_of("dies of unknown capabilities")


def opened(result: Any) -> None:
    for option in result.get("configOptions", []):
        if option["type"] != "select":
            dies_of("dies of odd options")
        if option.get("category") in (None, "_accord.check/category"):
            dies_of("dies of odd categories")


def updated(params: Any) -> None:
    fields = params["update"]
    kind = fields["sessionUpdate"]
    counted.append(kind)
    if len(counted) > 1_500:
        dies_of("has a small queue")
    if kind == "plan":
        dies_of("dies of a plan")
    if kind == "tool_call" and "kind" not in fields:
        dies_of("dies of a bare tool call")
    if fields.get("messageId", "") is None:
        dies_of("dies of a null id")
    if "_meta" in params["update"]:
        dies_of("dies of _meta")
    if kind.startswith("_"):
        dies_of("dies of an unknown update")
    if fields.get("toolCallId") == "check-cancelled" and fields.get("status") == "failed":
        dies_of("dies of late updates")
    if fields.get("content", {}) and "checks are done" in str(fields.get("content")):
        dies_of("leaves in the turn")


def told(method: str, params: Any) -> None:
    if method == "session/update":
        updated(params)
    elif method == "elicitation/complete":
        dies_of("dies of a completion")
    elif method.startswith("$/"):
        dies_of("dies of a dollar")
    else:
        dies_of("dies of an unknown notification")


def permission(params: Any, number: Any) -> Any:
    if params["toolCall"]["toolCallId"] == "check-cancelled":
        question.append(number)
        return None
    return {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}}


def interrupted(*_: Any) -> None:
    """The user presses Ctrl-C, once the question is there."""

    def cancel() -> None:
        while not question:
            time.sleep(0.01)
        send(method="session/cancel", params={"sessionId": session})
        chosen = {"outcome": "selected", "optionId": "yes"}
        outcome = chosen if FAULT == "allows what was cancelled" else {"outcome": "cancelled"}
        send(id=question[0], result={"outcome": outcome})

    threading.Thread(target=cancel, daemon=True).start()


def inside(path: str) -> Path:
    resolved = Path(path) if FAULT == "follows links" else Path(path).resolve()
    if FAULT != "reads everything" and not resolved.is_relative_to(ROOT):
        raise Refused(-32602, "outside of the folder")
    return resolved


def read(params: Any, _: Any) -> Any:
    try:
        lines = inside(params["path"]).read_text().splitlines(keepends=True)
    except FileNotFoundError:
        if FAULT == "reads missing files as empty":
            return {"content": ""}
        raise Refused(-32002, "no such file") from None
    first = params.get("line", 1) - (0 if FAULT == "counts from zero" else 1)
    limit = None if FAULT == "returns all lines" else params.get("limit")
    return {"content": "".join(lines[first : None if limit is None else first + limit])}


def write(params: Any, _: Any) -> Any:
    if FAULT == "refuses in red":
        raise Refused(-32603, "\x1b[31mno\x1b[0m")
    if FAULT != "writes nothing":
        inside(params["path"]).write_text(params["content"])
    return {}


def create(params: Any, _: Any) -> Any:
    words = [params["command"], *params.get("args", [])]
    made = {it["name"]: it["value"] for it in params.get("env", [])}
    process = subprocess.Popen(
        " ".join(words) if FAULT == "runs through a shell" else words,
        shell=FAULT == "runs through a shell",
        cwd=params.get("cwd"),
        env={**os.environ, **({} if FAULT == "forgets the environment" else made)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    name = f"t{len(terminals)}"
    terminals[name] = Terminal(process, params.get("outputByteLimit"))
    if FAULT == "waits in create":
        process.wait()
    return {"terminalId": name}


def terminal(params: Any) -> Terminal:
    if params["terminalId"] not in terminals:
        raise Refused(-32002, "no such terminal")
    return terminals[params["terminalId"]]


def output(params: Any, _: Any) -> Any:
    it = terminal(params)
    if FAULT == "waits in output":
        it.process.wait()
    status = it.status()
    return {"output": it.said(), "truncated": it.truncated, **({} if status is None else {"exitStatus": status})}


def wait(params: Any, _: Any) -> Any:
    it = terminal(params)
    it.process.wait()
    it.reader.join()
    return it.status()


def kill(params: Any, _: Any) -> Any:
    if FAULT == "has no kill":
        raise Refused(-32601, "Method not found")
    terminal(params).process.kill()
    if FAULT == "forgets killed terminals":
        del terminals[params["terminalId"]]
    return {}


def release(params: Any, _: Any) -> Any:
    it = terminals[params["terminalId"]] if FAULT == "keeps released terminals" else terminal(params)
    if FAULT != "lets released commands run":
        it.process.kill()
    if FAULT != "keeps released terminals":
        terminals.pop(params["terminalId"], None)
    return {}


WITH_LINKS = FAULT in ("dies of a completion", "shows forms unasked")


def elicit(params: Any, _: Any) -> Any:
    mode = "url" if WITH_LINKS else "form"
    if params["mode"] == mode:
        return {"action": "accept", **({} if WITH_LINKS else {"content": {"name": "Ada", "count": 3}})}
    if FAULT in ("shows links unasked", "shows forms unasked"):
        return {"action": "decline"}
    raise Refused(-32603 if FAULT == "refuses a question with another code" else -32602, "undeclared mode")


METHODS = {
    "session/request_permission": permission,
    "fs/read_text_file": read,
    "fs/write_text_file": write,
    "terminal/create": create,
    "terminal/output": output,
    "terminal/wait_for_exit": wait,
    "terminal/kill": kill,
    "terminal/release": release,
    "elicitation/create": elicit,
}


def unknown() -> None:
    raise Refused(-32000 if FAULT == "refuses with another code" else -32601, "Method not found")


def serve(message: dict[str, Any]) -> None:
    method, number = message["method"], message["id"]
    try:
        if method not in METHODS:
            is_custom = method.startswith("_")
            if FAULT == "answers nothing custom" and is_custom:
                return
            if FAULT == "answers nothing unknown" and not is_custom:
                return
            unknown()
        result = METHODS[method](message.get("params") or {}, number)
    except Refused as refused:
        send(id=number, error={"code": refused.code, "message": str(refused)})
        return
    if result is not None:
        send(id=number, result=result)


def received(line: bytes) -> None:
    if len(line) > 65_536:
        dies_of("has small lines")
    try:
        message = json.loads(line)
    except ValueError:
        dies_of("dies of noise")
        dies_of("reads the log")
        return
    method = message.get("method")
    if method is not None and not isinstance(method, str):
        dies_of("dies of a bad message")
        if FAULT != "is silent about what is no message":
            send(id=message["id"], error={"code": -32600, "message": "Invalid request"})
    elif method is None:
        results[message["id"]] = message.get("result")
        asked[message["id"]].set()
    elif "id" not in message:
        told(method, message.get("params"))
    else:
        threading.Thread(target=serve, args=(message,), daemon=True).start()


def receive() -> None:
    assert agent.stdout is not None
    for line in agent.stdout:
        received(line)
    if FAULT == "waits for a dead agent":
        time.sleep(60)
    leave(1)


signal.signal(signal.SIGINT, interrupted)
threading.Thread(target=receive, daemon=True).start()
patience = 0.4 if FAULT == "is impatient" else 60.0
CAPABILITIES = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"url": {}} if WITH_LINKS else {"form": {}},
}
initialized(
    ask(
        "initialize",
        {"protocolVersion": 1, "clientCapabilities": CAPABILITIES, "clientInfo": {"name": "faulty", "version": "1"}},
    )
)
created = ask("session/new", {"cwd": str(ROOT), "mcpServers": []})
opened(created)
session = created["sessionId"]
ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}, patience)
if FAULT == "kills its agent":
    agent.kill()
elif FAULT == "ends its agent by a signal":
    agent.terminate()
elif agent.stdin is not None:
    agent.stdin.close()
agent.wait()
leave(0)
