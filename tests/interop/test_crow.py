"""Our client with crow-cli, an agent on the official Python SDK's pre-release, in version 2."""

from contextlib import asynccontextmanager

import pytest
from benchmarks.build import Unavailable
from interop.model.replies import SENTENCE
from interop.model.server import ModelServer

import accord
from interop import crow

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture
def connect(tmp_path):
    """Returns a function that connects to the agent, as often as a test likes, in one home and folder."""
    try:
        command = [str(crow.installed()), "acp2"]
    except Unavailable as missing:
        pytest.skip(str(missing))
    with ModelServer() as model:
        settings = {"cwd": tmp_path, "env": crow.environment(tmp_path, model.url), "inherit": False, "timeout": 300}

        @asynccontextmanager
        async def connected():
            async with accord.connect(command, versions=(2,), **settings) as remote:
                yield remote

        yield connected


def messages(session):
    return [(message.speaker, message.text) for message in session.state.messages]


ASKED, SAID = ("user", "Say hello."), ("agent", SENTENCE)


async def test_it_speaks_version_2_and_answers_a_prompt(connect, tmp_path):
    async with connect() as remote:
        assert (remote.version, remote.name) == (2, "crow-cli")
        session = await remote.new_session(tmp_path)
        outcome = await session.prompt("Say hello.")
        assert (outcome.text, outcome.stop_reason, messages(session)) == (SENTENCE, "end_turn", [ASKED, SAID])


async def test_a_prompt_that_comes_meanwhile_is_part_of_the_work(connect, tmp_path):
    async with connect() as remote:
        session = await remote.new_session(tmp_path)
        for reply in [session.prompt("Say hello."), session.prompt("Say hello.")]:
            assert SENTENCE in (await reply).text
        await session.idle()
        # The second becomes part of the work on the first, or work of its own.
        assert [speaker for speaker, _ in messages(session)].count("user") == 2


async def test_a_session_is_loaded_after_a_restart_and_goes_on(connect, tmp_path):
    async with connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.prompt("Say hello.")
        assert session.id in [info.session_id async for info in remote.sessions()]
    async with connect() as remote:
        session = await remote.load(session.id, tmp_path)
        assert messages(session) == [ASKED, SAID]
        assert (await session.prompt("Say hello.")).text == SENTENCE


async def test_a_fork_goes_on_apart_from_its_session(connect, tmp_path):
    async with connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.prompt("Say hello.")
        fork = await session.fork()
        assert (await fork.prompt("Say hello.")).text == SENTENCE
        assert messages(session) == [ASKED, SAID]
        assert (await session.prompt("Say hello.")).text == SENTENCE
