"""A bare agent that writes as fast as a pipe takes it; `memory_runs.py` starts it.

It knows only prompts: `updates N` sends N updates, `big N` sends one of N characters, anything else is only read.
"""

import json
import os

UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
UPDATE += b'"agent_message_chunk","content":{"type":"text","text":"%b"}}}}\n'
BATCH = 1000


def send(data):
    data = memoryview(data)
    while data:
        data = data[os.write(1, data) :]


def answer(request_id, result):
    send(b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (request_id, result))


def prompt(words):
    match words.split():
        case ["updates", number]:
            batch = UPDATE % (b"x" * 40) * BATCH
            for _ in range(int(number) // BATCH):
                send(batch)
        case ["big", number]:
            send(UPDATE % (b"x" * int(number)))


def main():
    with open(0, "rb", buffering=1 << 20) as lines:
        for line in lines:
            message = json.loads(line)
            match message:
                case {"method": "initialize", "id": request_id}:
                    answer(request_id, b'{"protocolVersion":1}')
                case {"method": "session/prompt", "id": request_id, "params": {"prompt": [{"text": words}]}}:
                    prompt(words[:100])
                    answer(request_id, b'{"stopReason":"end_turn"}')


if __name__ == "__main__":
    main()
