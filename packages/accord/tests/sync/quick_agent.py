"""An agent for these tests; it needs nothing of Accord, so it starts quickly, and notes what it is told.

python quick_agent.py FILE [WAY]        FILE gets its process number and what it was told, one a line

A prompt says what it does: `say WORDS`, `ask` (for permission), `wait` (until it is cancelled), `ignore` (a cancel).
WAY is `silent` (no answer to initialize) or `stubborn` (it ends neither when its input ends nor on SIGTERM).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

NOTES = Path(sys.argv[1])
WAY = sys.argv[2] if len(sys.argv) > 2 else ""
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
waiting = {}
asked = {}
sessions = []


def note(word):
    with NOTES.open("a") as file:
        print(word, file=file)


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(session, text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": session, "update": update})


def end(prompt, reason="end_turn"):
    send(id=prompt, result={"stopReason": reason})


def prompted(prompt, session, text):
    verb, _, rest = text.partition(" ")
    note(f"prompt {verb}")
    if verb == "say":
        for word in rest.split():
            say(session, f"{word} ")
        end(prompt)
    elif verb == "ask":
        asked[f"ask-{prompt}"] = (prompt, session)
        call = {"toolCallId": f"t-{prompt}", "title": "Dig", "kind": "execute"}
        params = {"sessionId": session, "toolCall": call, "options": OPTIONS}
        send(id=f"ask-{prompt}", method="session/request_permission", params=params)
    elif verb in ("wait", "ignore"):
        say(session, "waiting")
        waiting[session] = prompt if verb == "wait" else None


def answered(message):
    prompt, session = asked.pop(message["id"])
    outcome = message["result"]["outcome"]
    if outcome["outcome"] == "cancelled":
        end(prompt, "cancelled")
    else:
        say(session, outcome["optionId"])
        end(prompt)


def handle(message):
    method, params = message.get("method"), message.get("params", {})
    if method is None:
        answered(message)
    elif method == "initialize":
        note("initialize")
        if WAY != "silent":
            send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        sessions.append(f"s{len(sessions)}")
        send(id=message["id"], result={"sessionId": sessions[-1]})
    elif method == "session/prompt":
        prompted(message["id"], params["sessionId"], params["prompt"][0]["text"])
    elif method == "session/cancel":
        note("cancelled")
        if (prompt := waiting.pop(params["sessionId"], None)) is not None:
            end(prompt, "cancelled")


note(os.getpid())
if WAY == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    handle(json.loads(line))
note("end of input")
while WAY == "stubborn":
    time.sleep(1000)
