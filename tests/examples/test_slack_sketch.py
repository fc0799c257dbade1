"""The bridge to Slack, with a local server in the place of Slack that checks what the bot sends."""

import hashlib
import hmac
import http.server
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import asynccontextmanager

import pytest

from tests.examples.programs import program
from tests.waiting import DEADLINE, eventually

SECRET, TOKEN = "signing-secret", "xoxb-1"


class Slack(http.server.ThreadingHTTPServer):
    """chat.postMessage and chat.update; `messages` has the channel, the thread and the text of each message."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Api)
        self.messages = {}
        self.calls = []
        self.limited = 0
        """So many calls are answered with 429 first."""

    def said(self, text):
        return any(text in message["text"] for message in list(self.messages.values()))


class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        slack = self.server
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self.answer(200, {"ok": False, "error": "invalid_auth"})
        if slack.limited:
            slack.limited -= 1
            return self.answer(429, {"ok": False}, ("Retry-After", "0"))
        slack.calls.append(self.path)
        if self.path == "/chat.postMessage":
            ts = f"{len(slack.messages) + 1}.0"
            slack.messages[ts] = {"thread": body.get("thread_ts"), "channel": body["channel"], "text": body["text"]}
            return self.answer(200, {"ok": True, "ts": ts})
        assert self.path == "/chat.update"
        slack.messages[body["ts"]]["text"] = body["text"]
        return self.answer(200, {"ok": True, "ts": body["ts"]})

    def answer(self, status, body, *headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(data)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def slack():
    with Slack() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def send(url, body, *, at=None, secret=SECRET):
    """Post an event as Slack does; returns the status and the body of the answer."""
    data, at = json.dumps(body).encode(), str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{at}:".encode() + data, hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={digest}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=DEADLINE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def direct(text, ts, user="ada", **more):
    event = {"type": "message", "channel_type": "im", "channel": "D1", "user": user, "text": text, "ts": ts, **more}
    return {"type": "event_callback", "event_id": f"E{ts}", "event": event}


@pytest.fixture
def bot(slack, tmp_path):
    """`async with bot() as url`: the bot in Slack; the URL takes events."""

    @asynccontextmanager
    async def bot():
        (tmp_path / "project").mkdir()
        api = f"http://127.0.0.1:{slack.server_address[1]}"
        env = {"SLACK_BOT_TOKEN": TOKEN, "SLACK_SIGNING_SECRET": SECRET, "SLACK_API": api, "PORT": "0"}
        options = ["--slack", "--pause", "0", "--folder", tmp_path / "project", "--store", tmp_path / "bot.sqlite3"]
        demo = [sys.executable, "-m", "accord", "demo", "--pace", "0"]
        async with program("chat_bot/bot.py", *options, "--", *demo, env=env) as running:
            yield (await running.printed(r"http://127\.0\.0\.1:\d+/slack/events", "err"))[0]

    return bot


async def test_a_direct_message_is_answered_once_however_often_it_is_delivered(bot, slack):
    async with bot() as url:
        assert send(url, direct("my name is Ada", "100.1")) == (200, "")
        assert send(url, direct("my name is Ada", "100.1")) == (200, "")
        assert send(url, direct("who am I?", "100.2")) == (200, "")
        await eventually(lambda: slack.said("You are Ada."))
        texts = [message["text"] for message in slack.messages.values()]
        assert [text.split(",")[0] for text in texts] == ["Pleased to meet you", "You are Ada."]
        assert {message["thread"] for message in slack.messages.values()} == {None}


async def test_a_mention_in_a_channel_is_answered_in_its_thread(bot, slack):
    event = {"type": "app_mention", "channel": "C1", "user": "ada", "text": "<@U9> my name is Ada", "ts": "7.7"}
    async with bot() as url:
        send(url, {"type": "event_callback", "event": event})
        await eventually(lambda: slack.said("session lives."))
        [message] = slack.messages.values()
        assert (message["channel"], message["thread"]) == ("C1", "7.7")


async def test_a_limit_of_slack_is_waited_for(bot, slack):
    slack.limited = 2
    async with bot() as url:
        send(url, direct("my name is Ada", "1.1"))
        await eventually(lambda: slack.said("session lives."))
        assert slack.limited == 0


async def test_an_agent_cannot_call_a_channel(bot, slack):
    async with bot() as url:
        send(url, direct("&lt;!channel&gt; tea &amp; cake", "1.1"))
        await eventually(lambda: slack.said("You said: &lt;!channel&gt; tea &amp; cake"))


async def test_only_its_author_answers_the_question_about_a_message(bot, slack, tmp_path):
    async with bot() as url:
        send(url, direct("/edit", "1.1", user="ada"))
        await eventually(lambda: slack.said("Answer yes or no."))
        send(url, direct("yes", "1.2", user="eve"))
        send(url, direct("no", "1.3", user="ada"))
        await eventually(lambda: slack.said("I changed nothing."))
        assert not (tmp_path / "project" / "accord-demo.md").exists()


async def test_what_slack_did_not_sign_is_refused(bot, slack):
    async with bot() as url:
        assert send(url, direct("hello", "1.1"), secret="another")[0] == 403
        assert send(url, direct("hello", "1.2"), at=time.time() - 600)[0] == 403
        assert send(url, {"type": "url_verification", "challenge": "c4"}) == (200, "c4")
        assert send(url, direct("hello", "1.3", bot_id="B1")) == (200, "")
        send(url, direct("my name is Ada", "1.4"))
        await eventually(lambda: slack.said("session lives."))
        assert len(slack.messages) == 1
