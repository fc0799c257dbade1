# @google/gemini-cli 0.61.0: session/load begins with a recording of its own, in a file named after the session and the
# minute. In the minute in which the session began that is the session's own file: what it held is lost, now and later.
# Prints: {'details': 'No previous sessions found for this project.'}
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
time.sleep(60 - time.time() % 60)  # at the beginning of a minute
session = ask("session/new", cwd=work, mcpServers=[])["result"]["sessionId"]
ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Remember this."}])
print(ask("session/load", sessionId=session, cwd=work, mcpServers=[])["error"]["data"])
agent.communicate()
