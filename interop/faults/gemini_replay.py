# @google/gemini-cli 0.61.0: session/load is answered before the session is replayed.
# Prints: ['user_message_chunk', 'answer', 'user_message_chunk', 'agent_message_chunk', 'available_commands_update']
import json, os, subprocess, sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "{}"}]}, "finishReason": "STOP"}]}
        self.wfile.write(f"HTTP/1.0 200 OK\r\n\r\n{'data: ' * ('alt=sse' in self.path)}{json.dumps(said)}\n\n".encode())


def ask(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=agent.stdin, flush=True)
    return next(frame for frame in map(json.loads, agent.stdout) if "id" in frame)


model, work = HTTPServer(("127.0.0.1", 0), Model), tempfile.mkdtemp()
threading.Thread(target=model.serve_forever, daemon=True).start()
place = {"HOME": work, "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{model.server_port}"}
agent = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1, text=True, env=os.environ | place)
ask("initialize", protocolVersion=1)
session = ask("session/new", cwd=work, mcpServers=[])["result"]["sessionId"]
ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Remember this."}])
time.sleep(60 - time.time() % 60)  # until the minute of the session is over
load = {"sessionId": session, "cwd": work, "mcpServers": []}
print(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": load}), file=agent.stdin, flush=True)
frames = [json.loads(agent.stdout.readline()) for _ in range(5)]
print([frame["params"]["update"]["sessionUpdate"] if "params" in frame else "answer" for frame in frames])
agent.communicate()
