"""Our client drives the example agent that an SDK ships, as its authors wrote it.

Of the four, only Go's package has one that speaks version 1 and does more than shake hands.
"""

import asyncio

import pytest
from benchmarks.build import Unavailable
from interop.peers import built

import accord

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture
def go_example():
    try:
        return [str(built("go").folder / "bin" / "example")]
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("allowed", [True, False])
async def test_go_s_example_agent_does_its_turn(go_example, allowed, tmp_path):
    asked = []

    def ask(question):
        asked.append(question.tool_call.title)
        return allowed

    async with accord.connect(go_example, accord.Client(permissions=ask)) as remote:
        session = await remote.new_session(tmp_path)
        outcome = await session.prompt("hello", timeout=60)
    assert outcome.stop_reason == "end_turn"
    assert asked == ["Modifying critical configuration file"]
    assert [call.id for call in outcome.tool_calls] == ["call_1", "call_2"]
    assert ("completed" in [call.status for call in outcome.tool_calls if call.id == "call_2"]) == allowed


async def test_go_s_example_agent_is_cancelled(go_example, tmp_path):
    async with accord.connect(go_example) as remote:
        session = await remote.new_session(tmp_path)
        reply = session.prompt("hello")
        async with asyncio.timeout(60):
            async for _ in reply:
                break
            outcome = await reply.cancel()
    assert outcome.stop_reason == "cancelled"
