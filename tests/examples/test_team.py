"""The application for a team: a login, sessions that are apart, answers that stream, and the endpoint for editors."""

import asyncio
import json
import signal
import urllib.error
import urllib.request
from contextlib import asynccontextmanager

import pytest

import accord
from tests.examples.programs import program
from tests.waiting import DEADLINE

pytest.importorskip("fastapi", reason="fastapi is not installed; requirements/test.txt has it")

SECRET = "the secret of a test, 32 bytes or more"


class Browser:
    """A user's browser."""

    def __init__(self, url, token=None):
        self.url = url
        self.token = token

    def _opened(self, path, body):
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self.token}"} if self.token else {}
        )
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=DEADLINE)

    def _called(self, path, body):
        try:
            with self._opened(path, body) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def status(self, path, body=None):
        return (await asyncio.to_thread(self._called, path, body))[0]

    async def call(self, path, body=None):
        status, text = await asyncio.to_thread(self._called, path, body)
        assert status == 200, (status, text)
        return json.loads(text)

    async def events(self, path, body):
        """The events of an answer, as they come."""
        answer = await asyncio.to_thread(self._opened, path, body)
        try:
            while line := await asyncio.to_thread(answer.readline):
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            answer.close()

    async def ask(self, session, text):
        events = [event async for event in self.events(f"/sessions/{session}/prompts", {"text": text})]
        assert events[-1] == {"type": "end", "reason": "end_turn"}, events
        return "".join(event.get("text", "") for event in events)


@pytest.fixture
def team(tmp_path):
    """`async with team() as site`: the application; `await site("ada")` is the browser of a user who is logged in."""

    @asynccontextmanager
    async def team(pace=0):
        env = {"SECRET": SECRET, "PORT": "0", "TEAM_DATA": str(tmp_path), "PACE": str(pace)}
        async with program("web/team.py", env=env) as running:
            url = (await running.printed(r"http://127\.0\.0\.1:\d+", "err"))[0]

            async def site(name, password=None):
                password = password or {"ada": "lovelace", "bob": "ross"}[name]
                return Browser(url, (await Browser(url).call("/login", {"name": name, "password": password}))["token"])

            site.url, site.running = url, running
            yield site

    return team


async def test_a_user_talks_with_the_agent_and_sees_it_stream(team):
    async with team() as site:
        ada = await site("ada")
        session = (await ada.call("/sessions", {}))["id"]
        prompt = {"text": "my name is Ada"}
        events = [event async for event in ada.events(f"/sessions/{session}/prompts", prompt)]
        assert len([event for event in events if event["type"] == "text"]) > 3
        assert await ada.ask(session, "who am I?") == "You are Ada."
        told = await ada.call(f"/sessions/{session}")
        assert [it["speaker"] for it in told] == ["user", "agent", "user", "agent"]


async def test_a_user_has_no_way_to_the_sessions_of_another(team):
    async with team() as site:
        ada, bob = await site("ada"), await site("bob")
        session = (await ada.call("/sessions", {}))["id"]
        await ada.ask(session, "my name is Ada")
        assert [it["id"] for it in await ada.call("/sessions")] == [session]
        assert await bob.call("/sessions") == []
        assert await bob.status(f"/sessions/{session}") == 404
        assert await bob.status(f"/sessions/{session}/prompts", {"text": "who am I?"}) == 404
        for path in ("/sessions", f"/sessions/{session}"):
            assert await Browser(site.url).status(path) in (401, 403)
            assert await Browser(site.url, "nonsense").status(path) == 401
        assert await Browser(site.url).status("/login", {"name": "ada", "password": "byron"}) == 401


async def test_the_page_and_an_editor_see_the_same_sessions(team, tmp_path):
    folder = (tmp_path / "ada").resolve()
    async with team() as site:
        ada, bob = await site("ada"), await site("bob")
        session = (await ada.call("/sessions", {}))["id"]
        await ada.ask(session, "my name is Ada")
        async with accord.connect(f"{site.url}/agents/acp", token=ada.token) as editor:
            assert [info.session_id async for info in editor.sessions()] == [session]
            other = await editor.new_session(folder)
            await other.prompt("my name is Countess")
            elsewhere = await editor.new_session("/etc")
            await elsewhere.prompt("hello")
        async with accord.connect(f"{site.url}/agents/acp", token=bob.token) as editor:
            assert [info.session_id async for info in editor.sessions()] == []
        assert await ada.ask(other.id, "who am I?") == "You are Countess."
        assert {it["id"] for it in await ada.call("/sessions")} == {session, other.id}
        assert await ada.status(f"/sessions/{elsewhere.id}") == 404


@pytest.mark.parametrize("allow", [True, False])
async def test_a_question_of_the_agent_is_answered_in_the_browser(team, tmp_path, allow):
    async with team() as site:
        ada, bob = await site("ada"), await site("bob")
        session = (await ada.call("/sessions", {}))["id"]
        said = ""
        async for event in ada.events(f"/sessions/{session}/prompts", {"text": "/edit"}):
            said += event.get("text", "")
            if event["type"] == "question":
                assert "+You allowed it." in event["diffs"][0]
                assert await bob.status(f"/questions/{event['number']}", {"allow": True}) == 404
                await ada.call(f"/questions/{event['number']}", {"allow": allow})
        assert ("I wrote" in said) == allow
        assert (tmp_path / "ada" / "accord-demo.md").exists() == allow


async def test_sessions_outlive_the_application(team):
    async with team() as site:
        ada = await site("ada")
        session = (await ada.call("/sessions", {}))["id"]
        await ada.ask(session, "my name is Ada")
    async with team() as site:
        ada = await site("ada")
        assert await ada.ask(session, "who am I?") == "You are Ada."


async def test_a_browser_that_leaves_stops_the_agent(team):
    async with team(pace=0.01) as site:
        ada = await site("ada")
        session = (await ada.call("/sessions", {}))["id"]
        events = ada.events(f"/sessions/{session}/prompts", {"text": "/slow 3600"})
        async for event in events:
            if event["type"] == "text":
                break
        assert await ada.status(f"/sessions/{session}/prompts", {"text": "hello"}) == 409
        await events.aclose()
        async with asyncio.timeout(DEADLINE):
            while await ada.status(f"/sessions/{session}/prompts", {"text": "hello"}) == 409:
                pass
        [*_, last] = [it for it in await ada.call(f"/sessions/{session}") if "I stopped at step" in it["text"]]
        assert last["speaker"] == "agent"


async def test_the_application_ends_in_order_while_an_answer_streams(team):
    async with team(pace=0.01) as site:
        ada = await site("ada")
        session = (await ada.call("/sessions", {}))["id"]
        async for event in ada.events(f"/sessions/{session}/prompts", {"text": "/slow 3600"}):
            if event["type"] == "text":
                site.running.process.send_signal(signal.SIGTERM)
        assert await site.running.ended() in (0, -signal.SIGTERM)
        assert "Traceback" not in site.running.err
        assert "Application shutdown complete" in site.running.err


async def test_the_page_is_there(team):
    async with team() as site:
        status, text = await asyncio.to_thread(Browser(site.url)._called, "/", None)
        assert status == 200
        assert "<title>Team</title>" in text
