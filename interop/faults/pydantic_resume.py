# pydantic-acp 1.10.0: `run_acp` declares session/resume and session/fork, but leaves out `use_unstable_protocol`,
# without which agent-client-protocol 0.12.1 refuses both.
# Prints: resume declared: True, -32601 Method not found; fork declared: True, -32601 Method not found
import json
import subprocess
import sys

AGENT = "from pydantic_ai import Agent; from pydantic_acp import run_acp; run_acp(Agent('test'))"
agent = subprocess.Popen([sys.executable, "-c", AGENT], stdin=-1, stdout=-1, text=True)


def ask(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=agent.stdin, flush=True)
    return next(frame for frame in map(json.loads, agent.stdout) if "id" in frame)


capabilities = ask("initialize", protocolVersion=1)["result"]["agentCapabilities"]["sessionCapabilities"]
session = ask("session/new", cwd="/", mcpServers=[])["result"]["sessionId"]
found = []
for name in ("resume", "fork"):
    error = ask(f"session/{name}", sessionId=session, cwd="/", mcpServers=[])["error"]
    found.append(f"{name} declared: {name in capabilities}, {error['code']} {error['message']}")
print("; ".join(found))
agent.communicate()
