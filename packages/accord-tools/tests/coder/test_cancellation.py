"""A cancel ends a turn in each of its phases.

What the turn waits for never ends by itself. The agent also answers a prompt when its work does not end within a time
of grace, and logs a warning then: no test here may see that warning.
"""

import asyncio
import threading

import pytest

import accord
from tests.coder.conftest import call, text_of
from tests.coder.test_model import SAID, Provider, status
from tests.waiting import eventually

ONE_API = pytest.mark.parametrize("api", ["openai"])
"""For what does not depend on the API."""


class Held:
    """An entry of a script: the model gets the request, and says nothing until the test is over."""

    def __init__(self):
        self._loop = asyncio.get_running_loop()
        self.asked = asyncio.Event()
        self.over = threading.Event()

    def __call__(self, _):
        self._loop.call_soon_threadsafe(self.asked.set)
        self.over.wait()
        return []


@pytest.fixture
async def held():
    held = Held()
    yield held
    held.over.set()


@pytest.fixture(autouse=True)
def ends_by_itself(caplog):
    yield
    assert "grace period" not in caplog.text


async def cancelled(session, reply):
    await session.cancel()
    outcome = await reply
    assert outcome.stop_reason == "cancelled"
    return outcome


async def goes_on(session, script, model):
    script.say("Here I am.")
    assert (await session.prompt("Are you there?")).text == "Here I am."
    return text_of(model.bodies[-1])


async def test_before_the_model_has_said_a_word(opened, script, model, held):
    script.say(held)
    async with opened() as session:
        reply = session.prompt("Think well")
        await held.asked.wait()
        await cancelled(session, reply)
        assert "Think well" in await goes_on(session, script, model)


async def test_in_the_pause_before_a_refused_request_is_repeated(opened, settings, api):
    import msgspec

    async with Provider() as provider:
        provider.answers = [status(429, SAID, "retry-after: 50")]
        async with opened(changed=msgspec.structs.replace(settings, base_url=provider.url)) as session:
            reply = session.prompt("Go")
            await eventually(lambda: provider.requests == 1)
            await cancelled(session, reply)
        assert provider.requests == 1


@ONE_API
@pytest.mark.parametrize("tool", [("run_command", {"command": "true"}), ("write_file", {"path": "a", "content": "x"})])
async def test_while_the_user_is_asked(opened, script, model, project, tool):
    asked = asyncio.Event()

    async def permissions(_):
        asked.set()
        await asyncio.Event().wait()

    script.say(call(tool[0], **tool[1]))
    async with opened(client=accord.Client(files=True, terminals=True, permissions=permissions)) as session:
        reply = session.prompt("Do it")
        await asked.wait()
        outcome = await cancelled(session, reply)
        assert [it.is_finished for it in outcome.tool_calls] == [True]
        assert "The user cancelled this." in await goes_on(session, script, model)
    assert not (project / "a").exists()


@ONE_API
@pytest.mark.parametrize("terminals", [True, False])
async def test_in_a_command(opened, script, model, project, questions, terminals):
    script.say(call("run_command", command="echo $$ > pid; exec sleep 1000"))
    client = accord.Client(files=True, terminals=terminals, permissions=questions)
    async with opened(client=client, mode="auto") as session:
        reply = session.prompt("Sleep")
        await eventually(lambda: (project / "pid").exists() and (project / "pid").read_text().strip())
        await cancelled(session, reply)
        process = int((project / "pid").read_text())
        await eventually(lambda: is_over(process))
        assert "The user cancelled this." in await goes_on(session, script, model)


@ONE_API
async def test_in_a_call_of_an_mcp_server(opened, script, model):
    began, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    script.say(call("notes__wait"))
    async with opened(mcp_servers=[accord.tools(wait, name="notes")], mode="auto") as session:
        reply = session.prompt("Wait")
        await began.wait()
        await cancelled(session, reply)
        await ended.wait()
        assert "The user cancelled this." in await goes_on(session, script, model)


async def test_in_a_summary_which_leaves_the_conversation_as_it_was(opened, script, model, held):
    script.say("A long answer.", held)
    async with opened() as session:
        await session.prompt("Tell me")
        reply = session.prompt("/compact")
        await held.asked.wait()
        await cancelled(session, reply)
        assert "A long answer." in await goes_on(session, script, model)


async def test_in_the_work_of_a_subagent(opened, script, model, held):
    script.say(call("delegate", title="Look", task="Look for callers"), held)
    async with opened() as session:
        reply = session.prompt("Who calls it?")
        await held.asked.wait()
        await cancelled(session, reply)
        assert "The user cancelled this." in await goes_on(session, script, model)


def is_over(process):
    """Whether this process has ended; one that waits for its parent to take notice has."""
    try:
        with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
