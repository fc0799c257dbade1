"""A fleet of agents behind one URL: paths, the file, draining, and the end."""

import asyncio
import json
import signal
import sys
import urllib.error
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from tests.examples.conftest import EXAMPLES
from tests.examples.programs import program
from tests.waiting import DEADLINE

pytest.importorskip("starlette", reason="starlette is not installed; requirements/test.txt has it")
pytest.importorskip("uvicorn", reason="uvicorn is not installed; requirements/test.txt has it")

TOKEN = "s3cret"
ECHO = [sys.executable, str(EXAMPLES / "echo_agent.py")]
DEMO = [sys.executable, "-m", "accord", "demo", "--pace", "0.005"]
OBEDIENT = [sys.executable, str(Path(__file__).with_name("obedient_agent.py"))]


class Fleet:
    def __init__(self, file):
        self.file = file
        self.running = None
        self.url = ""

    def write(self, **agents):
        lines = [f"[agents.{name}]\ncommand = {json.dumps(command)}\n" for name, command in agents.items()]
        self.file.write_text("\n".join(lines))

    async def reread(self, expected):
        self.running.process.send_signal(signal.SIGHUP)
        await self.running.printed(expected)

    def at(self, name):
        return f"{self.url}/agents/{name}/acp"

    def _get(self, path, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, None, headers), timeout=DEADLINE) as it:
                return it.status, it.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def get(self, path, token=TOKEN):
        return await asyncio.to_thread(self._get, path, token)


@pytest.fixture
def fleet(tmp_path):
    """`async with fleet(echo=ECHO) as served`: a fleet of these agents."""

    @asynccontextmanager
    async def fleet(**agents):
        served = Fleet(tmp_path / "fleet.toml")
        served.write(**agents)
        env = {"FLEET_TOKEN": TOKEN, "PORT": "0"}
        async with program("fleet/fleet.py", served.file, env=env) as served.running:
            served.url = (await served.running.printed(r"http://127\.0\.0\.1:\d+", "err"))[0]
            yield served

    return fleet


async def said(url, prompt):
    async with accord.connect(url, token=TOKEN) as remote:
        return (await (await remote.new_session("/")).prompt(prompt)).text


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_each_agent_has_a_path(fleet, scheme):
    async with fleet(echo=ECHO, obedient=OBEDIENT) as served:
        echo, obedient = (served.at(name).replace("http", scheme, 1) for name in ("echo", "obedient"))
        assert await asyncio.gather(said(echo, "say hi"), said(obedient, "say hi")) == ["You said: say hi", "hi"]


async def test_who_has_no_token_sees_nothing(fleet):
    async with fleet(echo=ECHO) as served:
        assert (await served.get("/agents", None))[0] == 401
        assert (await served.get("/agents", "wrong"))[0] == 401
        with pytest.raises(accord.ConnectionClosed, match="401"):
            async with accord.connect(served.at("echo")):
                pass


async def test_an_agent_that_is_not_there_is_said_to_be_missing(fleet):
    async with fleet(echo=ECHO) as served:
        assert await served.get("/agents/gone/acp") == (404, "no agent 'gone'")
        for url in (served.at("gone"), served.at("gone").replace("http", "ws", 1)):
            with pytest.raises(accord.ConnectionClosed):
                async with accord.connect(url, token=TOKEN):
                    pass


async def test_the_state_of_the_fleet_counts_connections_and_work(fleet):
    async with fleet(demo=DEMO, echo=ECHO) as served, accord.connect(served.at("demo"), token=TOKEN) as remote:
        reply = (await remote.new_session("/")).prompt("/slow 3600")
        async for _ in reply.iter_text():
            break
        state = {"demo": {"connections": 1, "running": 1}, "echo": {"connections": 0, "running": 0}}
        assert json.loads((await served.get("/agents"))[1]) == state
        assert await served.get("/healthz", None) == (200, "ok")
        await reply.cancel()


async def test_an_agent_that_changed_finishes_its_prompts_while_new_clients_get_the_new_one(fleet):
    async with fleet(agent=DEMO, other=OBEDIENT) as served, accord.connect(served.at("agent"), token=TOKEN) as remote:
        reply = (await remote.new_session("/")).prompt("/slow 3600")
        async for _ in reply.iter_text():
            break
        served.write(agent=ECHO, other=OBEDIENT)
        await served.reread(r"serving agent, other\n(?s:.*)serving agent, other\n")
        assert await said(served.at("agent"), "hi") == "You said: hi"
        outcome = await reply.cancel()  # the connection that drains still takes what its client sends
        assert (outcome.stop_reason, "I stopped at step" in outcome.text) == ("cancelled", True)


async def test_a_mistake_in_the_file_changes_nothing(fleet):
    async with fleet(echo=ECHO) as served:
        served.file.write_text("[agents.echo]\ncommand = 5\n")
        await served.reread(r"is not used: .*command")
        assert await said(served.at("echo"), "hi") == "You said: hi"
        served.write()
        await served.reread("serving no agent")
        assert (await served.get("/agents/echo/acp"))[0] == 404


async def test_the_end_waits_for_prompts_that_run(fleet):
    async with fleet(demo=DEMO) as served, accord.connect(served.at("demo"), token=TOKEN) as remote:
        reply = (await remote.new_session("/")).prompt("/slow 3")
        async for _ in reply.iter_text():
            break
        served.running.process.send_signal(signal.SIGTERM)
        assert (await reply).text.endswith("You let me finish.")
        assert await served.running.ended() in (0, -signal.SIGTERM)
        assert "Traceback" not in served.running.err
