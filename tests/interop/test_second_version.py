"""Our client with agents of the TypeScript SDK that speak version 2, version 1, or both behind its router."""

from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.peers import built

import accord
from interop import agents

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

AGENT = Path(agents.__file__).parent / "typescript_v2_agent.mjs"


@asynccontextmanager
async def connected(served, versions=(2, 1), **options):
    try:
        folder = built("typescript").folder
    except Unavailable as missing:
        pytest.skip(str(missing))
    env = {"ACP_SDK": str(folder / "node_modules/@agentclientprotocol/sdk/dist"), "ACP_SERVED": served}
    client = accord.Client(**options)
    async with accord.connect(["node", str(AGENT)], client, env=env, versions=versions) as remote:
        yield remote


@pytest.mark.parametrize(
    ("served", "versions", "version"),
    [
        ("v2", (2, 1), 2),
        ("v2", (2,), 2),
        ("both", (2, 1), 2),
        ("both", (1,), 1),
        ("v1", (2, 1), 1),
        ("app", (2, 1), 1),
    ],
)
async def test_the_version_is_the_highest_that_both_speak(served, versions, version):
    async with connected(served, versions) as remote:
        assert (remote.version, remote.name) == (version, f"typescript-v{version}")
        session = await remote.new_session("/")
        assert (await session.prompt("go")).text == ("two words" if version == 2 else "one word")


@pytest.mark.parametrize(("served", "versions"), [("v2", (1,)), ("v1", (2,))])
async def test_no_common_version_is_an_error(served, versions):
    with pytest.raises((accord.PeerError, accord.ProtocolError)):
        async with connected(served, versions):
            pass


async def test_a_question_a_failure_and_a_cancel():
    asked = []

    def ask(question):
        asked.append((question.title, question.tool_call.title))
        return True

    async with connected("both", permissions=ask) as remote:
        session = await remote.new_session("/")
        outcome = await session.prompt("edit")
        assert (asked, outcome.text) == ([("May I edit?", "Edit a.py")], "two words")
        assert [call.status for call in outcome.tool_calls] == ["completed"]
        with pytest.raises(accord.PeerError, match="the model is silent"):
            await session.prompt("fail")
        waiting = session.prompt("wait")
        assert await anext(waiting.iter_text()) == "waiting"
        held, withdrawn = session.prompt("go"), session.prompt("go")
        assert (await withdrawn.cancel()).stop_reason == "cancelled"
        assert (await waiting.cancel()).stop_reason == "cancelled"
        assert (await held).text == "two words"
        await session.idle()


async def test_a_session_is_resumed_with_and_without_its_past():
    async with connected("v2") as remote:
        session = await remote.new_session("/")
        await session.prompt("go")
        await session.close()
        again = await remote.load("s1", "/")
        assert [message.text for message in again.state.messages] == ["go"]
        await again.close()
        resumed = await remote.resume("s1", "/")
        assert resumed.state.messages == []
        assert (await resumed.prompt("go")).text == "two words"
