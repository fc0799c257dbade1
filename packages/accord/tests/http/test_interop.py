"""The clients of the TypeScript and Python SDKs with our server, and our clients with their servers."""

import asyncio
import json
import subprocess
from contextlib import asynccontextmanager

import pytest
from benchmarks.build import Unavailable
from benchmarks.peers import PYTHON, TYPESCRIPT, Peer, fill, venv_steps
from interop.peers import had

from accord.http import serving
from tests.http.talking import an_agent, editor_of, transport_to
from tests.waiting import DEADLINE

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TYPESCRIPT_REMOTE = Peer(
    name="interop-remote-typescript",
    package=TYPESCRIPT.package,
    version=TYPESCRIPT.version,
    language=TYPESCRIPT.language,
    agent=("node", "agent.mjs"),
    client=("node", "client.mjs"),
    files={
        "../interop/pins/remote.json": "package.json",
        "../interop/clients/typescript_remote.mjs": "client.mjs",
        "../interop/agents/typescript_remote.mjs": "agent.mjs",
    },
    steps=TYPESCRIPT.steps,
    tools=TYPESCRIPT.tools,
    install=TYPESCRIPT.install,
)
PYTHON_REMOTE = Peer(
    name="interop-remote-python",
    package=PYTHON.package,
    version=PYTHON.version,
    language=PYTHON.language,
    agent=("{venv}", "agent.py"),
    client=("{venv}", "client.py"),
    files={
        "../interop/pins/remote.txt": "remote.txt",
        "../interop/clients/python_remote.py": "client.py",
        "../interop/agents/python_remote.py": "agent.py",
    },
    steps=venv_steps("remote.txt"),
)

COUNTED = "".join(f"{number} " for number in range(200))


@pytest.fixture(scope="session", params=[TYPESCRIPT_REMOTE, PYTHON_REMOTE], ids=["TypeScript", "Python"])
def peer(request):
    try:
        return had(request.param)
    except Unavailable as missing:
        pytest.skip(str(missing))


@asynccontextmanager
async def program(built, tokens, *arguments):
    process = await asyncio.create_subprocess_exec(
        *fill(tokens, built.folder), *arguments, cwd=built.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(2 * DEADLINE):
            yield process
            process.stdin.close()
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_their_client_with_our_server(peer, scheme):
    async with (
        serving(an_agent()) as server,
        program(peer, peer.peer.client, server.url.replace("http", scheme, 1)) as client,
    ):
        told = json.loads(await client.stdout.read())
    assert told == {
        "stops": ["end_turn"] * 3,
        "said": [f"{COUNTED}allowed", COUNTED],
        "replayed": f"{COUNTED}allowed",
    }


@pytest.mark.parametrize("way", ["http1", "websocket"])
async def test_our_client_with_their_server(peer, way):
    async with program(peer, peer.peer.agent) as process:
        url = (await process.stdout.readline()).decode().strip()
        async with editor_of(transport_to(url, way)) as editor:
            one, two = await editor.open_session(), await editor.open_session()
            await asyncio.gather(editor.prompt(one, "count 200"), editor.prompt(two, "count 200"))
            await editor.prompt(one, "ask")
            assert (editor.text(one), editor.text(two)) == (f"{COUNTED}allowed", COUNTED)


@pytest.mark.parametrize("way", ["http1", "websocket"])
async def test_the_end_of_their_server_ends_our_connection(peer, way):
    async with program(peer, peer.peer.agent) as process:
        url = (await process.stdout.readline()).decode().strip()
        async with editor_of(transport_to(url, way)) as editor:
            await editor.open_session()
            process.stdin.close()
            assert (await editor.connection.closed()).reason in ("peer_closed", "broken")
