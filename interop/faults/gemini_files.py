# @google/gemini-cli 0.61.0 cannot make a new file over a client's: it looks for words in `String(error)` of an object.
# Prints: Error checking existing file: Resource not found
import json, os, subprocess, sys, tempfile, threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        call = {"functionCall": {"name": "write_file", "args": {"file_path": f"{work}/new.txt", "content": "x"}}}
        form, part = (b"data: %s\n\n", call) if "alt=sse" in self.path else (b"%s", {"text": "{}"})
        said = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + form % json.dumps(said).encode())


def send(until, **message):
    print(json.dumps({"jsonrpc": "2.0", "id": 1, **message}), file=agent.stdin, flush=True)
    return json.loads(next(line for line in agent.stdout if until in line))


model, work = HTTPServer(("127.0.0.1", 0), Model), tempfile.mkdtemp()
threading.Thread(target=model.serve_forever, daemon=True).start()
place = {"HOME": work, "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{model.server_port}"}
agent = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1, text=True, env=os.environ | place)
send("result", method="initialize", params={"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}})
session = send("result", method="session/new", params={"cwd": work, "mcpServers": []})["result"]["sessionId"]
said, refused = [{"type": "text", "text": "Write new.txt."}], {"code": -32002, "message": "Resource not found"}
asked = send("fs/read_text_file", method="session/prompt", params={"sessionId": session, "prompt": said})
asked = send("fs/read_text_file", id=asked["id"], error=refused)
print(send("failed", id=asked["id"], error=refused)["params"]["update"]["content"][0]["content"]["text"])
agent.communicate()
