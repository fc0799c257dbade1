"""A client of version 2 without a fault, in a few lines of the standard library; its second argument names a fault.

    faulty_v2_client.py AGENT [FAULT]

It sends one prompt, waits for the end of its work, and ends.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

AGENT = sys.argv[1]
FAULT = sys.argv[2] if len(sys.argv) > 2 else ""

agent = subprocess.Popen([AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
sending = threading.Lock()
answers: dict[int, queue.Queue[Any]] = {}
idle = threading.Event()
running = threading.Event()
cancelled = threading.Event()
counted: list[str] = []
session = ""


def leave(code: int) -> Any:
    os._exit(code)


def dies_of(fault: str) -> None:
    if fault == FAULT:
        leave(1)


def send(**message: Any) -> None:
    with sending:
        assert agent.stdin is not None
        try:
            agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            agent.stdin.flush()
        except OSError:
            leave(1)


def ask(method: str, params: Any) -> Any:
    number = len(answers)
    answers[number] = queue.Queue()
    send(id=number, method=method, params=params)
    answer = answers[number].get(timeout=60)
    return answer.get("result") if "result" in answer else leave(1)


def updated(fields: dict[str, Any]) -> None:
    kind = fields["sessionUpdate"]
    counted.append(kind)
    dies_of(f"dies of {kind}")
    if len(counted) > 1_500:
        dies_of("has a small queue")
    if kind.startswith("_"):
        dies_of("dies of an unknown update")
    if kind == "tool_call_update" and fields["toolCallId"] == "check-bare" and "kind" not in fields:
        dies_of("dies of a bare tool call")
    if kind == "tool_call_update" and fields["toolCallId"] == "check-cancelled" and fields.get("status") == "failed":
        dies_of("dies of late updates")
    if "checks are done" in str(fields.get("content")):
        dies_of("leaves in the work")
    if kind == "state_update" and fields["state"] == "running":
        running.set()
    if kind == "state_update" and fields["state"] == "idle" and running.is_set():
        idle.set()


def permitted(params: dict[str, Any]) -> Any:
    if params["subject"]["toolCall"]["toolCallId"] == "check-cancelled":
        cancelled.wait()
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": "yes"}}


def asked(message: dict[str, Any]) -> None:
    if message["method"] == "session/request_permission":
        send(id=message["id"], result=permitted(message["params"]))
    elif FAULT != "answers nothing unknown" or message["method"].startswith("_"):
        code = -32600 if FAULT == "refuses with another code" else -32601
        send(id=message["id"], error={"code": code, "message": "Method not found"})


def read() -> None:
    assert agent.stdout is not None
    for line in agent.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            dies_of("dies of noise")
            continue
        if not isinstance(message.get("method", ""), str):
            if FAULT != "is silent about what is no message":
                send(id=None, error={"code": -32600, "message": "Invalid request"})
        elif "method" not in message:
            if message.get("id") in answers:
                answers[message["id"]].put(message)
        elif "id" in message:
            threading.Thread(target=asked, args=(message,), daemon=True).start()
        elif message["method"] == "session/update":
            updated(message["params"]["update"])
        elif message["method"].startswith("$/"):
            dies_of("dies of a dollar")
        else:
            dies_of("dies of an unknown notification")
    if FAULT != "waits for a dead agent":
        leave(0 if idle.is_set() else 3)


def interrupted(*_: object) -> None:
    if not cancelled.is_set():
        cancelled.set()
        threading.Thread(target=send, kwargs={"method": "session/cancel", "params": {"sessionId": session}}).start()


signal.signal(signal.SIGINT, interrupted)
threading.Thread(target=read, daemon=True).start()
hello = {"protocolVersion": 2, "capabilities": {}, "info": {"name": "faulty", "version": "1"}}
answered = ask("initialize", hello)
if answered["protocolVersion"] != 2 and FAULT != "speaks any version":
    leave(1)
if not answered["capabilities"]["session"]:
    dies_of("needs capabilities")
if "accordCheckFuture" in answered["capabilities"]:
    dies_of("dies of unknown capabilities")
opened = ask("session/new", {"cwd": str(Path.cwd()), "mcpServers": []})
session = opened["sessionId"]
for option in opened.get("configOptions", []):
    if option["type"] != "select":
        dies_of("dies of odd options")
ask("session/prompt", {"sessionId": session, "idempotencyKey": "hello", "prompt": [{"type": "text", "text": "hello"}]})
if FAULT != "takes the receipt for the end":
    while not idle.wait(0.2):  # a wait without an end would keep Python from handling SIGINT
        pass
assert agent.stdin is not None
with sending:
    agent.stdin.close()
agent.wait()
