"""An agent that notes in a file what it is asked, and asks for permission to read and to edit.

python noting_agent.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import accord
from accord.testing import ScriptedPeer, ScriptFailed
from accord.transports.stdio_transport import StdioTransport

SESSION = {
    "sessionId": "s",
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]},
    "models": {
        "currentModelId": "s",
        "availableModels": [{"modelId": "s", "name": "Small"}, {"modelId": "l", "name": "l"}],
    },
    "configOptions": [{"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}],
}
HELLO = {
    "protocolVersion": 1,
    "authMethods": [{"id": "web", "name": "In the browser"}],
    "agentCapabilities": {"sessionCapabilities": {"resume": {}}},
}
RESULTS: dict[str, Any] = {
    "initialize": HELLO,
    "session/new": SESSION,
    "session/resume": SESSION,
    "session/set_config_option": {"configOptions": []},
    "session/prompt": {"stopReason": "end_turn"},
}
OPTIONS = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]


async def main(log: Path) -> None:
    async with ScriptedPeer(StdioTransport.standard(), deadline=60) as peer:
        while True:
            try:
                call = await peer.receive()
            except ScriptFailed:  # the end of its input
                return
            with log.open("a", encoding="utf-8") as file:
                print(call["method"], call.get("params"), file=file)
            if call["method"] == "session/prompt":
                await ask(peer)
            if "id" in call:
                peer.answer(call, RESULTS.get(call["method"]))


async def ask(peer: ScriptedPeer) -> None:
    for kind in ("read", "edit"):
        tool = {"toolCallId": kind, "kind": kind, "title": kind}
        question = {"sessionId": "s", "toolCall": tool, "options": OPTIONS}
        answer = await peer.request("session/request_permission", question)
        content = {"type": "text", "text": f"{kind} {answer['outcome']['optionId']}\n"}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        peer.tell("session/update", {"sessionId": "s", "update": update})


if __name__ == "__main__":
    accord.run(main(Path(sys.argv[1])))
