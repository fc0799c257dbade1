"""A server over plain sockets that numbers its messages as a test wants."""

import asyncio
import json
from contextlib import asynccontextmanager

OPENED = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}}


def update(session, text):
    content = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    params = {"sessionId": session, "update": content}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()


class Numbering:
    """Answers each POST, and gives each stream to `speak(stream, session)`, in a task of its own."""

    def __init__(self, speak):
        self._speak = speak
        self._speaking = set()

    async def connected(self, reader, writer):
        self._speaking.add(asyncio.current_task())
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
                if head.startswith("get"):
                    await self._stream(writer, fields.get("acp-session-id"))
                    return
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                writer.write(self._answer(body))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    def _answer(self, body):
        if b'"initialize"' not in body:
            return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        answer = json.dumps(OPENED).encode()
        fields = b"Acp-Connection-Id: c\r\nAccord-Numbered: connection\r\nContent-Length: %d" % len(answer)
        return b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\n" + answer

    async def _stream(self, writer, session):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        await self._speak(Stream(writer), session)

    async def end(self):
        for task in self._speaking:
            task.cancel()
        await asyncio.gather(*self._speaking, return_exceptions=True)


class Stream:
    def __init__(self, writer):
        self._writer = writer

    async def say(self, number, message):
        await self.write(b"id: %d\ndata: %b\n\n" % (number, message))

    async def write(self, data):
        self._writer.write(data)
        await self._writer.drain()


@asynccontextmanager
async def numbering(speak):
    """A server that lets `speak` say what each stream brings, and its URL."""
    server = Numbering(speak)
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/acp"
    finally:
        listening.close()
        await server.end()
