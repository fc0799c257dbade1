"""A client over HTTP without a fault, in a few lines of the standard library; its second argument names a fault.

    faulty_http_client.py URL [FAULT]

It sends one prompt, answers every request with an error, and ends.
"""

from __future__ import annotations

import http.client
import json
import queue
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ADDRESS = urlsplit(sys.argv[1])
FAULT = sys.argv[2] if len(sys.argv) > 2 else ""

answers: dict[Any, queue.Queue[Any]] = {}
always: dict[str, str] = {}


def request(method: str, message: Any = None, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(ADDRESS.netloc, timeout=60)
    given = {**always, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, ADDRESS.path, None if message is None else json.dumps(message), given)
    return connection.getresponse()


def post(message: Any, **headers: str) -> http.client.HTTPResponse:
    return request("POST", {"jsonrpc": "2.0", **message}, **{"Content_Type": "application/json", **headers})


def listen(opened: threading.Event, **headers: str) -> None:
    stream = request("GET", Accept="text/event-stream", **headers)
    opened.set()
    for line in stream:
        if line.startswith(b"data:"):
            received(json.loads(line[5:]))


def listening(**headers: str) -> None:
    opened = threading.Event()
    threading.Thread(target=listen, args=(opened,), kwargs=headers, daemon=True).start()
    assert opened.wait(60)


def received(message: dict[str, Any]) -> None:
    if "method" not in message:
        if message.get("id") in answers:
            answers[message["id"]].put(message)
    elif "id" in message:
        given = message.get("params", {}).get("sessionId")
        mine = {} if given is None else {"Acp_Session_Id": given}
        post({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}}, **mine)


def ask(number: int, method: str, params: Any, **headers: str) -> Any:
    answers[number] = queue.Queue()
    post({"id": number, "method": method, "params": params}, **headers)
    return answers[number].get(timeout=60)["result"]


def initialize() -> None:
    params = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "faulty", "version": "1"}}
    answered = post({"id": 0, "method": "initialize", "params": params})
    always["Acp-Connection-Id"] = answered.headers["Acp-Connection-Id"]
    if FAULT != "forgets the version":
        always["Acp-Protocol-Version"] = "1"
    if FAULT != "forgets its cookies":
        always["Cookie"] = answered.headers["Set-Cookie"].partition(";")[0]


def is_wrong_once(session: str) -> None:
    """One request with the fault; the server refuses it, or takes it for nothing."""
    told = {"method": "session/cancel", "params": {"sessionId": session}}
    if FAULT == "posts text":
        post(told, Acp_Session_Id=session, Content_Type="text/plain")
    elif FAULT == "reads anything":
        request("GET", Accept="text/html").read()
    elif FAULT == "forgets the connection":
        kept = always.pop("Acp-Connection-Id")
        post({"method": "_faulty/nothing", "params": {}})
        always["Acp-Connection-Id"] = kept
    elif FAULT == "forgets the session":
        post(told)
    elif FAULT == "names another session":
        post(told, Acp_Session_Id="another")


initialize()
listening()
session = ask(1, "session/new", {"cwd": str(Path.cwd()), "mcpServers": []})["sessionId"]
listening(Acp_Session_Id=session)
is_wrong_once(session)
block = {"type": "text", "text": "hello"}
ask(2, "session/prompt", {"sessionId": session, "prompt": [block]}, Acp_Session_Id=session)
request("DELETE")
