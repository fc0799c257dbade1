"""An agent that misbehaves in the way that its argument names; it needs nothing of Accord, so it starts quickly.

python bad_agent.py WAY FILE        FILE gets the numbers of its processes, one a line
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

WAY = sys.argv[1]
PIDS = Path(sys.argv[2])


def note(pid):
    with PIDS.open("a") as file:
        print(pid, file=file)


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(call, result):
    send({"id": call["id"], "result": result})


def update(**fields):
    send({"method": "session/update", "params": {"sessionId": "s", "update": fields}})


def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def forever():
    while True:
        time.sleep(1000)


def die(code=3):
    sys.stderr.write("bad agent: no more\n")
    sys.stderr.flush()
    os._exit(code)


def hear():
    line = sys.stdin.buffer.readline()
    if not line:
        end()
    return json.loads(line)


def end():
    if WAY == "ignores-the-end":
        forever()
    os._exit(0)


def expect(method):
    while True:
        message = hear()
        if message.get("method") == method:
            return message


def before_initialize():
    if WAY == "dies-at-start":
        die()
    if WAY == "prints-a-notice":
        write(b"Welcome to Bad Agent 1.0!\nLoading...\n")
    if WAY == "prints-and-dies":
        write(b"Usage: bad-agent [--acp]\n")
        os._exit(2)
    if WAY == "5-mb-of-stderr":
        for _ in range(5 * 16):
            sys.stderr.write(("x" * 1023 + "\n") * 64)
    if WAY == "leaves-children":
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"])
        note(child.pid)
    if WAY in ("ignores-the-end", "ignores-cancel"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def greet():
    hello = expect("initialize")
    if WAY == "dies-in-initialize":
        die()
    if WAY == "silent-in-initialize":
        forever()
    if WAY == "closes-stdout":
        os.close(1)
        forever()
    if WAY == "refuses-initialize":
        send({"id": hello["id"], "error": {"code": -32603, "message": "no\nlicence", "data": {"why": "expired"}}})
        return
    version = 99 if WAY == "wrong-version" else "one" if WAY == "wrong-shape-of-initialize" else 1
    answer(hello, {"protocolVersion": version, "agentCapabilities": {"promptCapabilities": "all of them"}})


def open_session():
    new = expect("session/new")
    if WAY == "dies-in-new":
        die()
    if WAY == "silent-in-new":
        forever()
    if WAY == "early-updates":
        update(sessionUpdate="available_commands_update", availableCommands=[{"name": "x", "description": "y"}])
        update(sessionUpdate="hologram", depth=1)
    if WAY == "wrong-shape-of-new":
        answer(new, {"session": "s"})
    elif WAY == "wants-a-login":
        send({"id": new["id"], "error": {"code": -32000, "message": "Authentication required"}})
    else:
        answer(new, {"sessionId": "s"})
    if WAY == "early-updates":
        update(sessionUpdate="current_mode_update", currentModeId="fast")


def half_a_turn():
    say("Hel")
    if WAY == "dies-in-a-turn":
        die()
    if WAY == "killed-in-a-turn":
        os.kill(os.getpid(), signal.SIGKILL)
    if WAY == "silent-in-a-turn":
        forever()
    if WAY == "half-a-line-and-dies":
        write(b'{"jsonrpc":"2.0","method":"session/upd')
        os._exit(0)
    if WAY == "ignores-cancel":
        expect("session/cancel")
        note("cancelled")
        forever()
    if WAY == "obeys-cancel":
        expect("session/cancel")
    if WAY == "junk-frames":
        for junk in (b"[]", b"17", b'"text"', b"null", b"{}", b'{"jsonrpc":"2.0","id":77,"result":1}', b"\xff\xfe\x00"):
            write(junk + b"\n")
        write(b'[{"jsonrpc":"2.0","id":5,"method":"session/x"}]\n{"jsonrpc":"1.0","method":1}\n\r\n')
    if WAY == "unknown-variants":
        update(sessionUpdate="hologram", depth=1.5)
        update(sessionUpdate="agent_message_chunk", content={"type": "smell", "of": "roses"})
        send({"method": "session/gossip", "params": {}})
        update(sessionUpdate=7)
    if WAY == "split-surrogates":
        write(rb'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":')
        write(rb'"agent_message_chunk","content":{"type":"text","text":"\ud83d"}}}}' + b"\n")
        write(rb'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":')
        write(rb'"agent_message_chunk","content":{"type":"text","text":"\udc4d"}}}}' + b"\n")
    if WAY == "ids-that-look-alike":
        ask_with_odd_ids()
    if WAY == "20-mb-chunk":
        say("x" * 20_000_000)
    if WAY == "20000-chunks":
        for _ in range(20_000):
            say("word ")


def ask_with_odd_ids():
    ids = [0, "0", 1, "1"]
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": "s", "toolCall": {"toolCallId": "t", "title": "Read", "kind": "read"}, "options": options}
    for request_id in ids:
        send({"id": request_id, "method": "session/request_permission", "params": params})
    for _ in ids:
        reply = hear()
        ids = [it for it in ids if not (type(it) is type(reply["id"]) and it == reply["id"])]
        assert reply["result"] == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    say(f"{len(ids)} left, ")


def end_the_turn(prompt):
    say("lo")
    if WAY == "wrong-shape-of-the-answer":
        answer(prompt, {"stop": "now"})
    elif WAY == "result-and-error":
        send({"id": prompt["id"], "result": {"stopReason": "end_turn"}, "error": {"code": 1, "message": "or not"}})
    elif WAY == "answers-an-error":
        send({"id": prompt["id"], "error": {"code": 500, "message": "model overloaded", "data": "try again"}})
    elif WAY == "odd-stop-reason":
        answer(prompt, {"stopReason": "tired"})
    elif WAY == "obeys-cancel":
        answer(prompt, {"stopReason": "cancelled"})
    elif WAY == "refuses":
        answer(prompt, {"stopReason": "refusal"})
    elif WAY == "no-newline-at-the-end":
        write(json.dumps({"jsonrpc": "2.0", "id": prompt["id"], "result": {"stopReason": "end_turn"}}).encode())
        os._exit(0)
    else:
        answer(prompt, {"stopReason": "end_turn"})
    if WAY == "answers-twice":
        answer(prompt, {"stopReason": "refusal"})


note(os.getpid())
before_initialize()
greet()
open_session()
prompt = expect("session/prompt")
half_a_turn()
end_the_turn(prompt)
while True:
    hear()
