"""Functions of clients, services, proxies and agents that answer something: `async`, or plain in a thread."""

import asyncio
import gc
import threading
from contextlib import suppress

import pytest

import accord
from accord import Agent, Client, Proxy, v1
from accord._internal.tasks import give_up
from tests.waiting import DEADLINE

KINDS = pytest.mark.parametrize("kind", ["async", "plain"])


class Answer(accord.Model):
    word: str


class Ask(accord.Request[Answer], method="_test/ask"):
    session_id: v1.SessionId


class Note(accord.Notification, method="_test/note"):
    session_id: v1.SessionId
    number: int


def meeting(kind, answer):
    """A function of this kind that answers when two calls of it are open at once."""
    if kind == "plain":
        both = threading.Barrier(2)

        def function(about):
            both.wait(DEADLINE)
            return answer(about)

        return function
    met = asyncio.Barrier(2)

    async def function(about):
        await met.wait()
        return answer(about)

    return function


async def asked_for_permission(turn):
    assert await turn.ask("May I?")


async def asked_for_input(turn):
    assert (await turn.elicit("How?", v1.ElicitationSchema({}))).action == "accept"


async def asked(turn):
    assert (await turn.client.request(Ask(turn.session.id))).word == "yes"


async def asked_by_name(turn):
    assert await turn.client.request_raw("_test/plain", {"sessionId": turn.session.id}) == {"word": "yes"}


async def ended(turn):
    pass


class Service(accord.Service):
    def __init__(self, function):
        self.function = function

    def declare(self, capabilities):
        return capabilities

    def register(self, handlers, _session_of):
        handlers.on(Ask)(self.function)


def yes(about):
    return Answer("yes")


def place(name, kind):
    """A client, what stands before the agent, and what is registered with the connection; and the agent's work."""
    client = Client(permissions=True)
    match name:
        case "a client's permissions":
            return Client(permissions=meeting(kind, lambda _: True)), None, None, asked_for_permission
        case "a client's forms":
            return Client(elicitation=meeting(kind, lambda _: {})), None, None, asked_for_input
        case "client.on":
            client.on(Ask)(meeting(kind, yes))
            return client, None, None, asked
        case "client.on_request":
            client.on_request("_test/plain")(meeting(kind, lambda _: {"word": "yes"}))
            return client, None, None, asked_by_name
        case "remote.on":
            return client, None, lambda remote, _: remote.on(Ask)(meeting(kind, yes)), asked
        case "session.on":
            function = meeting(kind, yes)
            return client, None, lambda _, sessions: [it.on(Ask)(function) for it in sessions], asked
        case "a service":
            return Client(services=[Service(meeting(kind, yes))]), None, None, asked
    proxy = Proxy("between")
    if name == "proxy.prompts":
        proxy.prompts(meeting(kind, lambda prompt: prompt))
        return client, proxy, None, ended
    if name == "proxy.permissions":
        proxy.permissions(meeting(kind, lambda _: True))
        return Client(), proxy, None, asked_for_permission
    proxy.from_agent(Ask)(meeting(kind, yes))
    return client, proxy, None, asked


PLACES = [
    "a client's permissions",
    "a client's forms",
    "client.on",
    "client.on_request",
    "remote.on",
    "session.on",
    "a service",
    "proxy.prompts",
    "proxy.permissions",
    "proxy.from_agent",
]


@KINDS
@pytest.mark.parametrize("name", PLACES)
async def test_a_function_that_answers_may_wait_while_another_call_of_it_runs(name, kind):
    client, proxy, register, work = place(name, kind)
    agent = Agent("asks")
    agent.on_prompt(work)
    async with accord.connect(agent if proxy is None else accord.chain(proxy, agent), client) as remote:
        sessions = [await remote.new_session("/") for _ in range(2)]
        if register is not None:
            register(remote, sessions)
        outcomes = await asyncio.gather(*(it.prompt("go") for it in sessions))
    assert [it.stop_reason for it in outcomes] == ["end_turn"] * 2


@KINDS
async def test_an_agent_s_handlers_of_requests_may_wait(kind):
    agent = Agent("answers")
    agent.on_prompt(ended)
    agent.on(Ask)(meeting(kind, yes))
    agent.on_request("_test/plain")(meeting(kind, lambda _: {"word": "yes"}))
    async with accord.connect(agent) as remote:
        both = await asyncio.gather(*(remote.request(Ask(v1.SessionId("s"))) for _ in range(2)))
        assert [it.word for it in both] == ["yes", "yes"]
        raw = await asyncio.gather(*(remote.request_raw("_test/plain", {}) for _ in range(2)))
        assert raw == [{"word": "yes"}] * 2


@KINDS
async def test_a_cancelled_turn_does_not_wait_for_the_function_that_is_asked(kind):
    asked, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def blocks(question):
        loop.call_soon_threadsafe(asked.set)
        go_on.wait(DEADLINE)
        return True

    async def waits(question):
        asked.set()
        await asyncio.Event().wait()

    agent = Agent("asks")
    agent.on_prompt(asked_for_permission)
    async with accord.connect(agent, Client(permissions=blocks if kind == "plain" else waits)) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("go")
        await asked.wait()
        await reply.cancel()
        assert (await reply).stop_reason == "cancelled"
    go_on.set()


@KINDS
async def test_a_proxy_s_function_forwards_a_request_and_changes_the_answer(kind):
    proxy, seen = Proxy("between", state=list), []

    def plain(request, hop: accord.sync.Hop):
        hop.state.append(hop.forward(request).word)
        hop.client.tell(v1.SessionNotification(request.session_id, v1.AgentMessageChunk.of(hop.came_from)))
        seen.append((threading.current_thread().name, hop.session_id, hop.version))
        return Answer(hop.state[0].upper())

    async def with_async(request, hop: accord.Hop):
        hop.state.append((await hop.forward(request)).word)
        hop.client.tell(v1.SessionNotification(request.session_id, v1.AgentMessageChunk.of(hop.came_from)))
        seen.append((threading.current_thread().name, hop.session_id, hop.version))
        return Answer(hop.state[0].upper())

    proxy.from_agent(Ask)(plain if kind == "plain" else with_async)
    client, agent = Client(), Agent("asks")
    client.on(Ask)(yes)

    @agent.on_prompt
    async def work(turn):
        await turn.say((await turn.client.request(Ask(turn.session.id))).word)

    async with accord.connect(accord.chain(proxy, agent), client) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("go")).text == "agentYES"
        assert [it[1:] for it in seen] == [(session.id, 1)]
    assert ("accord" in seen[0][0]) is (kind == "plain")


async def test_a_cancel_is_an_exception_in_what_a_proxy_s_function_waits_for():
    proxy, arrived, seen = Proxy("between"), asyncio.Event(), []

    @proxy.from_agent(Ask)
    def wait(request, hop: accord.sync.Hop):
        try:
            return hop.forward(request)
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    client, agent = Client(), Agent("asks")

    @client.on(Ask)
    async def never(request):
        arrived.set()
        await asyncio.Event().wait()

    @agent.on_prompt
    async def work(turn):
        asking = asyncio.ensure_future(turn.client.request(Ask(turn.session.id)))
        await arrived.wait()
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

    async with accord.connect(accord.chain(proxy, agent), client) as remote:
        await (await remote.new_session("/")).prompt("go")
    assert seen in (["CancelledError"], ["PeerError"], ["RawPeerError"])


async def test_plain_functions_that_are_told_something_are_called_in_the_event_loop_in_order():
    here, client, proxy, agent, seen = threading.get_ident(), Client(), Proxy("between"), Agent("tells"), []

    @client.on(Note)
    def note(message):
        seen.append(("client", message.number, threading.get_ident()))

    @proxy.updates
    def shorten(update, hop: accord.sync.Hop):
        hop.state["seen"] = hop.state.get("seen", 0) + 1
        seen.append(("proxy", hop.state["seen"], threading.get_ident()))
        return update

    @agent.on_prompt
    async def work(turn):
        for number in range(1, 51):
            await turn.client.notify(Note(turn.session.id, number))
            await turn.say(".")

    async with accord.connect(accord.chain(proxy, agent), client) as remote:
        assert (await (await remote.new_session("/")).prompt("go")).text == "." * 50
    assert {thread for *_, thread in seen} == {here}
    assert [number for who, number, _ in seen if who == "client"] == list(range(1, 51))
    assert [number for who, number, _ in seen if who == "proxy"] == list(range(1, 51))


async def test_a_plain_handler_that_takes_the_context_is_called_in_the_event_loop():
    agent, seen = Agent("low"), []
    agent.on_prompt(ended)

    @agent.on(Ask)
    def answer(request, context: accord.Context):
        seen.append(threading.get_ident())
        return Answer(str(context.cancelled))

    async with accord.connect(agent) as remote:
        assert (await remote.request(Ask(v1.SessionId("s")))).word == "False"
    assert seen == [threading.get_ident()]


def test_a_hop_of_the_wrong_kind_is_an_error_at_the_decorator():
    proxy = Proxy("between")

    def plain(prompt, hop: accord.Hop):
        return prompt

    async def with_async(prompt, hop: accord.sync.Hop):
        return prompt

    with pytest.raises(TypeError, match=r"write `hop: accord.sync.Hop`, or `async def plain"):
        proxy.prompts(plain)
    with pytest.raises(TypeError, match=r"write `hop: accord.Hop`, or `def with_async"):
        proxy.prompts(with_async)


async def test_no_coroutine_that_is_given_up_before_it_begins_counts_as_a_forgotten_await(recwarn):
    async def inner(): ...

    async def outer(message, value):
        return message, await value

    give_up(outer("message", outer("message", inner())))
    gc.collect()
    assert not recwarn.list
