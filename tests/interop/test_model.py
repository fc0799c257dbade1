"""The model that is made of rules answers each API in its own form."""

import json
import socket
import struct
import urllib.request

import pytest
from interop.model.replies import CONTENT, SENTENCE
from interop.model.server import ModelServer

from tests.waiting import wait_until

PARAMETERS = {"type": "object", "properties": {"path": {}, "content": {}}}
TOOL = {"name": "write_file", "parameters": PARAMETERS}


def chat(text):
    return {"messages": [{"role": "user", "content": text}], "tools": [{"type": "function", "function": TOOL}]}


def responses(text):
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"input": [said], "tools": [{"type": "function", **TOOL}]}


def messages(text):
    return {
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": TOOL["name"], "input_schema": PARAMETERS}],
    }


def gemini(text):
    contents = [{"role": "user", "parts": [{"text": text}]}]
    return {"contents": contents, "tools": [{"functionDeclarations": [TOOL]}]}


APIS = {
    "/v1/chat/completions": (chat, lambda it: it["choices"][0]["delta"].get("content", "")),
    "/v1/responses": (responses, lambda it: it.get("delta", "")),
    "/v1/messages": (messages, lambda it: it.get("delta", {}).get("text", "")),
    "/v1beta/models/x:streamGenerateContent": (
        gemini,
        lambda it: it["candidates"][0]["content"]["parts"][0].get("text", ""),
    ),
}


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


def events(model, path, body):
    request = urllib.request.Request(
        model.url + path, json.dumps({**body, "stream": True}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        lines = [line.removeprefix("data: ") for line in answer.read().decode().splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize("path", APIS)
def test_it_answers_in_a_stream_of_words(model, path):
    body, words = APIS[path]
    assert "".join(words(event) for event in events(model, path, body("Hello"))) == SENTENCE


@pytest.mark.parametrize("path", APIS)
def test_it_writes_a_file_with_the_tool_that_there_is(model, path):
    body, _ = APIS[path]
    answer = json.dumps(events(model, path, body("EDIT /work/a.txt")))
    assert "write_file" in answer
    assert "/work/a.txt" in answer
    assert CONTENT.strip() in answer


def test_an_agent_that_leaves_during_an_answer_causes_no_traceback(model, capfd):
    body = {**chat("STREAM"), "stream": True}
    asked = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: model\r\nContent-Length: {len(asked)}\r\n\r\n"
    with socket.create_connection(model.server_address) as agent:
        agent.sendall(head.encode() + asked)
        assert agent.recv(1)
        agent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave by a reset
    wait_until(lambda: "the agent has left" in model.notes)
    assert "Traceback" not in capfd.readouterr().err


def test_an_agent_that_leaves_before_its_request_is_complete_causes_no_traceback(model, capfd):
    with socket.create_connection(model.server_address) as agent:
        agent.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: model\r\nContent-Length: 100\r\n\r\n{")
        agent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: "the agent has left" in model.notes)
    assert "Traceback" not in capfd.readouterr().err
