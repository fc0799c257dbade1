"""The TypeScript SDK's clients with our server, and our clients with its server."""

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.build import Unavailable, build
from benchmarks.peers import TYPESCRIPT, Peer
from talking import DEADLINE, an_agent, editor_of, transport_to

from accord.http import serving

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

REMOTE = Peer(
    name="interop-remote-typescript",
    package=TYPESCRIPT.package,
    version=TYPESCRIPT.version,
    language=TYPESCRIPT.language,
    agent=("agent.mjs",),
    client=("client.mjs",),
    files={
        "../interop/pins/remote.json": "package.json",
        "../interop/clients/typescript_remote.mjs": "client.mjs",
        "../interop/agents/typescript_remote.mjs": "agent.mjs",
    },
    steps=TYPESCRIPT.steps,
    tools=TYPESCRIPT.tools,
    install=TYPESCRIPT.install,
)

COUNTED = "".join(f"{number} " for number in range(200))


@pytest.fixture(scope="session")
def typescript():
    try:
        return build(REMOTE, print).folder
    except Unavailable as missing:
        pytest.skip(str(missing))


@asynccontextmanager
async def program(folder, *arguments):
    process = await asyncio.create_subprocess_exec(
        "node", *arguments, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
async def test_their_client_with_our_server(typescript, scheme):
    async with (
        serving(an_agent()) as server,
        program(typescript, "client.mjs", server.url.replace("http", scheme, 1)) as client,
    ):
        told = json.loads(await client.stdout.read())
    assert told == {
        "stops": ["end_turn"] * 3,
        "said": [f"{COUNTED}allowed", COUNTED],
        "replayed": f"{COUNTED}allowed",
    }


@pytest.mark.parametrize("way", ["http1", "websocket"])
async def test_our_client_with_their_server(typescript, way):
    async with program(typescript, "agent.mjs") as process:
        url = (await process.stdout.readline()).decode().strip()
        async with editor_of(transport_to(url, way)) as editor:
            one, two = await editor.open_session(), await editor.open_session()
            await asyncio.gather(editor.prompt(one, "count 200"), editor.prompt(two, "count 200"))
            await editor.prompt(one, "ask")
            assert (editor.text(one), editor.text(two)) == (f"{COUNTED}allowed", COUNTED)


@pytest.mark.parametrize("way", ["http1", "websocket"])
async def test_the_end_of_their_server_is_the_end_of_our_link(typescript, way):
    async with program(typescript, "agent.mjs") as process:
        url = (await process.stdout.readline()).decode().strip()
        async with editor_of(transport_to(url, way)) as editor:
            await editor.open_session()
            process.stdin.close()
            assert (await editor.connection.closed()).reason in ("peer_closed", "broken")
