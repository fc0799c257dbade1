"""Observers on other hosts: by the store, without a shared agent, and with the token of an observer."""

import asyncio

import pytest

import accord
from accord import v1
from accord.http.client.connection_pool import ConnectionPool
from tests.hosts.hosting import INITIALIZE, JSON, HostProcesses, editor_on
from tests.waiting import DEADLINE, eventually

WATCHING = {"accord.dev/watch": True}
TOKENS = {"tokens": {"s3cret": "ada"}, "observers": {"0ther": "ada"}}
CONTROLLER, OBSERVER = ({"Authorization": f"Bearer {token}"} for token in ("s3cret", "0ther"))


async def watch(editor, session):
    request = v1.LoadSessionRequest(session, "/project", [], meta=WATCHING)
    return await editor.request(request, timeout=DEADLINE)


async def heard(editor, session, text):
    async with asyncio.timeout(DEADLINE):
        while editor.text(session) != text:
            await editor.hear_more()


async def test_a_turn_is_watched_on_another_host_and_goes_on(directory):
    async with (
        HostProcesses(directory, 2) as hosts,
        editor_on(hosts.all[0].url) as one,
        editor_on(hosts.all[1].url, "websocket") as two,
    ):
        session = await one.open_session()
        turn = asyncio.create_task(one.prompt(session, "slowly 50"))
        async with asyncio.timeout(DEADLINE):
            await one.first_words.wait()
        await watch(two, session)
        assert (await turn).stop_reason == "end_turn"
        await heard(two, session, "".join(f"{number} " for number in range(50)))
        with pytest.raises(accord.PeerError, match="only watches"):
            await two.prompt(session, "no")
        await one.prompt(session, "and more")
        await heard(two, session, "".join(f"{number} " for number in range(50)) + "and more")


async def test_the_death_of_the_host_that_works_leaves_its_observers_with_all_that_it_said(directory):
    async with (
        HostProcesses(directory, 2) as hosts,
        editor_on(hosts.all[0].url, "websocket") as one,
        accord.connect(hosts.all[1].url.replace("http", "ws"), versions=(2,)) as two,
    ):
        session = await one.open_session()
        turn = asyncio.create_task(one.prompt(session, "wait"))
        async with asyncio.timeout(DEADLINE):
            await one.first_words.wait()
        watched = await two.watch(session)
        await hosts.all[0].end()
        with pytest.raises(accord.ConnectionClosed):
            await turn
        assert watched.state.messages[-1].text == "waiting"
        async with editor_on(hosts.all[1].url) as three:
            await three.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
            await three.prompt(session, "on again")
            await eventually(lambda: watched.state.messages[-1].text == "on again")


@pytest.mark.parametrize("shared", [False, True])
async def test_an_observer_stays_one_whichever_host_its_requests_reach(directory, shared):
    settings = {**directory, **TOKENS, "shared": shared}
    async with (
        HostProcesses(settings, 2) as hosts,
        editor_on(hosts.all[0].url, headers=CONTROLLER) as one,
        editor_on(hosts.url, headers=OBSERVER) as two,  # the balancer sends each request to the next host
        editor_on(hosts.all[1].url, "websocket", headers=OBSERVER) as three,
    ):
        session = await one.open_session()
        turn = asyncio.create_task(one.prompt(session, "wait"))
        async with asyncio.timeout(DEADLINE):
            await one.first_words.wait()
        for other in (two, three):
            await other.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
            await heard(other, session, "waiting")
            for request in (v1.PromptRequest.of(session, "no"), v1.NewSessionRequest("/project", [])):
                with pytest.raises(accord.PeerError, match="this token may only watch"):
                    await other.request(request, timeout=DEADLINE)
            await other.notify(v1.CancelNotification(session))
            await other.request(v1.ListSessionsRequest(), timeout=DEADLINE)  # the link lives
        assert not turn.done()
        await one.notify(v1.CancelNotification(session))
        assert (await turn).stop_reason == "cancelled"


async def test_an_observer_cannot_use_a_controller_s_connection_through_another_host(directory):
    async with HostProcesses({**directory, **TOKENS}, 2) as hosts:
        first, second = hosts.all
        connection = await opened(first)
        headers = [("acp-connection-id", connection), ("accept", "text/event-stream")]
        for host in (first, second):
            assert (await host.ask("DELETE", [*headers, *OBSERVER.items()]))[0] == 404
        assert (await second.ask("DELETE", [*headers, *CONTROLLER.items()]))[0] == 202


async def opened(host):
    """The id of a connection that a controller has opened on this host."""
    asking = ConnectionPool(host.url, http2=False)
    try:
        response = await asking.request("POST", [*JSON, *CONTROLLER.items()], INITIALIZE)
        await response.body(1 << 20)
        identifier = response.header("acp-connection-id")
        assert identifier.startswith(host.id)
        return identifier
    finally:
        await asking.close()
