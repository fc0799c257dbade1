"""The agents inside web applications: their own users, sessions that are apart, and an end that waits for no stream."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest

import accord
from accord.http import HttpTransport
from accord.transports import Target
from tests.waiting import DEADLINE

WEB = Path(__file__).parents[2] / "examples" / "web"
"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""
SECRET = "the secret of a test, 32 bytes or more"


class ServerThatEnds(Target):
    """A server that is not expected to come back: nothing is repeated when it is gone."""

    is_here = False

    def __init__(self, url, token):
        self.name = url
        self._token = token

    def dial(self):
        return HttpTransport(self.name, headers={"Authorization": f"Bearer {self._token}"}, reconnect_within=0)


class Site:
    """A web application that runs as a process."""

    def __init__(self, process, url):
        self.process = process
        self.url = url

    @property
    def agents(self):
        return f"{self.url}/agents/acp"

    async def log_in(self, name, password):
        """The answer to a login: its status, and its JSON."""
        return await asyncio.to_thread(self._post, {"name": name, "password": password})

    def _post(self, login):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/login", json.dumps(login).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture(params=["fastapi_agent.py", "starlette_agent.py"])
def site(request):
    @asynccontextmanager
    async def site():
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",
            str(WEB / request.param),
            env={"SECRET": SECRET, "PORT": "0", "PATH": ""},
            stderr=subprocess.PIPE,
        )
        said = []
        try:
            async with asyncio.timeout(DEADLINE):
                while not (found := re.search(r"http://127.0.0.1:\d+", "".join(said))):
                    line = await process.stderr.readline()
                    assert line, "".join(said)
                    said.append(line.decode())
            yield Site(process, found[0])
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    return site


async def test_a_user_of_the_application_reaches_the_agent_with_the_token_of_the_login(site):
    async with site() as served:
        status, answer = await served.log_in("ada", "lovelace")
        assert status == 200
        for url in (served.agents, served.agents.replace("http", "ws", 1)):
            async with accord.connect(url, token=answer["token"]) as remote:
                session = await remote.new_session("/")
                assert (await session.prompt("hello")).text == "You said: hello"


async def test_who_is_no_user_stays_outside(site):
    expired = {"sub": "ada", "exp": datetime.now(UTC) - timedelta(hours=1)}
    tokens = [
        None,
        "nonsense",
        jwt.encode({"sub": "ada"}, SECRET, algorithm="HS256"),
        jwt.encode(expired, SECRET, algorithm="HS256"),
        jwt.encode({**expired, "exp": datetime.now(UTC) + timedelta(hours=1)}, SECRET + "?", algorithm="HS256"),
    ]
    async with site() as served:
        assert (await served.log_in("ada", "byron"))[0] == 401
        assert (await served.log_in("eve", None))[0] in (401, 422)
        for token in tokens:
            with pytest.raises(accord.ConnectionClosed, match="401"):
                async with accord.connect(served.agents, token=token):
                    pass


async def test_users_do_not_see_the_sessions_of_others(site):
    async with site() as served:
        (_, ada), (_, bob) = await served.log_in("ada", "lovelace"), await served.log_in("bob", "ross")
        async with (
            accord.connect(served.agents, token=ada["token"]) as first,
            accord.connect(served.agents, token=bob["token"]) as second,
        ):
            session = await first.new_session("/")
            assert [info.session_id async for info in first.sessions()] == [session.id]
            assert [info.session_id async for info in second.sessions()] == []


async def test_the_application_ends_while_an_editor_is_connected(site):
    async with site() as served:
        _, answer = await served.log_in("ada", "lovelace")
        async with accord.connect(ServerThatEnds(served.agents, answer["token"])) as remote:
            session = await remote.new_session("/")
            await session.prompt("hello")
            served.process.send_signal(signal.SIGTERM)
            _, said = await asyncio.wait_for(served.process.communicate(), DEADLINE)
            with pytest.raises(accord.ConnectionClosed):
                await session.prompt("still there?")
    assert served.process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in said.decode()
    assert "Application shutdown complete" in said.decode()
