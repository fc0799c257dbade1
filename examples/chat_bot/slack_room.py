"""A sketch of a bridge to Slack, with the standard library alone: events come in over HTTP, answers go out.

Slack posts an event to us and wants an answer within three seconds, or it posts the event again. We check its
signature, store the message, and answer; the work goes on in the background. In a direct message everything is for the
bot; in a channel, what mentions it, and each thread is a conversation. What a real bridge adds: formats, files, buttons
for questions, and one port for several workspaces.
"""

import asyncio
import hashlib
import hmac
import html
import http.server
import json
import logging
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, cast

from room import Message, RoomError

log = logging.getLogger("slack")

LONGEST_BODY = 1_000_000
OLDEST = 300
"""Seconds: an older event is refused, because it may be a recording."""
MOST_TRIES = 5
MENTION = re.compile(r"<@\w+>\s*")

Json = dict[str, Any]


class SlackRoom:
    """A room in Slack."""

    def __init__(self, token: str, secret: str, *, api: str, port: int) -> None:
        self._token = token
        self._secret = secret.encode()
        self._api = api
        self._port = port

    @classmethod
    def from_environment(cls) -> "SlackRoom":
        """The room of the app whose token and signing secret are in the environment."""
        return cls(
            os.environ["SLACK_BOT_TOKEN"],
            os.environ["SLACK_SIGNING_SECRET"],
            api=os.environ.get("SLACK_API", "https://slack.com/api"),
            port=int(os.environ.get("PORT", "3000")),
        )

    async def run(self, deliver: Callable[[Message], None]) -> None:
        loop = asyncio.get_running_loop()

        async def take(event: Json) -> None:
            if message := message_of(event):
                deliver(message)

        def hand_over(event: Json) -> None:
            asyncio.run_coroutine_threadsafe(take(event), loop).result(timeout=3)

        server = EventServer(("127.0.0.1", self._port), self._secret, hand_over)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        log.info("waiting for events at http://127.0.0.1:%s/slack/events", server.server_address[1])
        try:
            await asyncio.Event().wait()  # until the program is told to end
        finally:
            server.shutdown()
            server.server_close()

    async def post(self, conversation: str, text: str) -> str:
        channel, _, thread = conversation.partition("/")
        body = {"channel": channel, "text": safe(text)} | ({"thread_ts": thread} if thread else {})
        return str((await asyncio.to_thread(self._call, "chat.postMessage", body))["ts"])

    async def edit(self, conversation: str, message: str, text: str) -> None:
        body = {"channel": conversation.partition("/")[0], "ts": message, "text": safe(text)}
        await asyncio.to_thread(self._call, "chat.update", body)

    def _call(self, method: str, body: Json) -> Json:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json; charset=utf-8"}
        for _ in range(MOST_TRIES):
            request = urllib.request.Request(f"{self._api}/{method}", json.dumps(body).encode(), headers)
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    answer: Json = json.load(response)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code != 429:
                        raise RoomError(f"Slack answered {error.code} to {method}") from error
                    time.sleep(float(error.headers.get("Retry-After", "1")))
            except OSError as error:
                raise RoomError(f"Slack cannot be reached: {error}") from error
            else:
                if not answer.get("ok"):
                    raise RoomError(f"Slack refused {method}: {answer.get('error')}")
                return answer
        raise RoomError(f"Slack allowed no {method} after {MOST_TRIES} tries")


class EventServer(http.server.ThreadingHTTPServer):
    """Receives events: `take` is called with each whose signature is right."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], secret: bytes, take: Callable[[Json], None]) -> None:
        super().__init__(address, EventHandler)
        self.secret = secret
        self.take = take


class EventHandler(http.server.BaseHTTPRequestHandler):
    """One request of Slack."""

    @property
    def events(self) -> EventServer:
        return cast("EventServer", self.server)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= LONGEST_BODY:
            return self.answer(413, b"")
        body = self.rfile.read(length)
        if not is_signed(self.events.secret, self.headers.get("X-Slack-Request-Timestamp", ""), body, self.signature):
            return self.answer(403, b"wrong signature")
        event: Json = json.loads(body)
        if event.get("type") == "url_verification":
            return self.answer(200, str(event.get("challenge")).encode())
        self.events.take(event)
        return self.answer(200, b"")

    @property
    def signature(self) -> str:
        return self.headers.get("X-Slack-Signature", "")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        log.debug(format, *args)


def is_signed(secret: bytes, timestamp: str, body: bytes, signature: str) -> bool:
    """Whether Slack sent this body, and not long ago."""
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > OLDEST:
        return False
    wanted = hmac.new(secret, b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v0={wanted}".encode(), signature.encode())


def message_of(event: Json) -> Message | None:
    """The message in an event; None if it is not for the bot, or from one."""
    said: Json = event.get("event") or {}
    is_direct = said.get("type") == "message" and said.get("channel_type") == "im"
    if not (is_direct or said.get("type") == "app_mention") or said.get("bot_id") or said.get("subtype"):
        return None
    thread = said.get("thread_ts") or ("" if is_direct else said["ts"])
    # Not the id of the event: a mention may come as two events, and has one time.
    identifier = f"{said['channel']}:{said['ts']}"
    text = html.unescape(MENTION.sub("", said.get("text", "")))
    return Message(identifier, f"{said['channel']}/{thread}", said["user"], text)


def safe(text: str) -> str:
    """Text of an agent as text: without links that it hides and people that it calls."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
