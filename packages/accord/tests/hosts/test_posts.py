"""A POST that a proxy or a host refuses for now is repeated, and taken once."""

import pytest

import accord
from accord.http import serving
from tests.hosts.balancer import Balancer
from tests.hosts.hosting import editor_on
from tests.http.talking import an_agent


@pytest.fixture
async def balancer():
    async with serving(an_agent()) as server, Balancer([server.url]) as running:
        yield running


@pytest.mark.parametrize("what", ["refusals", "losses"])
async def test_a_refused_post_is_repeated_and_taken_once(balancer, what):
    async with editor_on(balancer.url) as editor:
        session = await editor.open_session()
        setattr(balancer, what, 3)
        await editor.prompt(session, "once")
        await editor.prompt(session, "more")  # it is posted when the first was not refused any more
        assert getattr(balancer, what) == 0
        assert editor.text(session) == "once more "


async def test_initialize_is_repeated_while_there_is_no_room(balancer):
    balancer.refusals = 3
    async with editor_on(balancer.url) as editor:
        assert balancer.refusals == 0
        session = await editor.open_session()
        await editor.prompt(session, "hello")
        assert editor.text(session) == "hello "


async def test_initialize_that_may_have_been_taken_is_not_repeated(balancer):
    balancer.losses = 2
    with pytest.raises(accord.ConnectionClosed, match="502"):
        async with editor_on(balancer.url):
            pass
    assert balancer.losses == 1


async def test_what_a_server_sent_on_a_stream_whose_answer_was_lost_is_sent_again(balancer):
    balancer.lost_streams = 1
    async with editor_on(balancer.url) as editor:
        session = await editor.open_session()  # its answer was on the lost stream
        await editor.prompt(session, "hello")
        assert balancer.lost_streams == 0
        assert editor.text(session) == "hello "
