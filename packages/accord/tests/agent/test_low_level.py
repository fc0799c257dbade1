"""The low level's way beside the high one: handlers of one's own, messages of one's own, what is declared."""

import asyncio
import gc
import weakref

import pytest

from accord import Agent, Client, Handlers, Model, PeerError, Request, RequestError, connect, v1, v2
from accord.schema.base import unknown_members, with_unknown_members
from tests.waiting import DEADLINE


class Greeting(Model):
    text: str


class Greet(Request[Greeting], method="_example.com/greet"):
    session_id: str


@pytest.fixture
def agent():
    agent = Agent("mixed")
    agent.on_prompt(lambda _: None)
    return agent


async def test_a_message_of_one_s_own_reaches_the_session(serve, agent):
    @agent.on(Greet)
    async def greet(request, context):
        session = agent.session(context, request.session_id)
        await session.send(v1.AgentMessageChunk.of("waving"))
        return Greeting(f"Hello from {session.cwd}")

    async with serve(agent) as editor:
        session = await editor.open()
        assert (await editor.request(Greet(session))).text == "Hello from /project"
        assert editor.text == "waving"
        with pytest.raises(PeerError) as raised:
            await editor.request(Greet("?"))
        assert (raised.value.code, raised.value.data) == (-32002, {"sessionId": "?"})


async def test_an_author_s_own_handler_goes_before_ours(serve, agent):
    @agent.on(v1.SetSessionModeRequest)
    def set_mode(request):
        raised.append(request.mode_id)

    raised = []
    async with serve(agent) as editor:
        await editor.request(v1.SetSessionModeRequest(v1.SessionId("?"), v1.SessionModeId("any")))
        assert raised == ["any"]


async def test_raw_handlers_take_what_has_no_class(serve, agent):
    heard = []
    agent.on_request("_example.com/add")(lambda params: {"sum": sum(params["numbers"])})
    agent.on_notification("_example.com/note")(heard.append)
    async with serve(agent) as editor:
        await editor.notify_raw("_example.com/note", {"text": "hi"})
        assert await editor.request_raw("_example.com/add", {"numbers": [1, 2]}) == {"sum": 3}
        assert heard == [{"text": "hi"}]


async def test_a_raw_handler_of_a_cancellation_does_not_wait_for_other_handlers_of_the_session(serve, agent):
    cancelled, ended = asyncio.Event(), asyncio.Event()

    @agent.on_notification("_example.com/work")
    async def work(_):
        await cancelled.wait()
        ended.set()

    @agent.on_notification("session/cancel")
    async def cancel(_):
        cancelled.set()

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.notify_raw("_example.com/work", {"sessionId": session})
        await editor.notify_raw("session/cancel", {"sessionId": session})
        async with asyncio.timeout(DEADLINE):
            await ended.wait()


@pytest.mark.requirement("initialize.agent-states-capabilities", "capabilities.agent-states-its-own")
async def test_what_is_handled_is_declared(serve, agent):
    @agent.on(v1.SetSessionTitleRequest)
    async def set_title(request, context):
        await agent.session(context, request.session_id).set_title(request.title)
        return v1.SetSessionTitleResponse(request.title)

    async with serve(agent) as editor:
        capabilities = editor.agent.agent_capabilities
        assert capabilities.session_capabilities.title is not None
        assert capabilities.session_capabilities.close is not None
        assert capabilities.session_capabilities.additional_directories is not None
        assert capabilities.session_capabilities.archive is None
        assert capabilities.load_session
        session = await editor.open()
        await editor.request(v1.SetSessionTitleRequest(session, "Talk"))
        assert editor.of(v1.SessionInfoUpdate) == [v1.SessionInfoUpdate(title="Talk")]


@pytest.mark.requirement("providers.advertised", "providers.agent-unknown-protocol")
async def test_providers_that_are_handled_are_declared_and_may_speak_any_protocol(serve, agent):
    asked = []

    @agent.on(v1.ListProvidersRequest)
    def providers(request):
        return v1.ListProvidersResponse([])

    @agent.on(v1.SetProviderRequest)
    def set_provider(request):
        asked.append(request.api_type)
        raise RequestError.invalid_params("no such protocol")

    async with serve(agent) as editor:
        assert editor.agent.agent_capabilities.providers is not None
        unheard_of = {"providerId": "main", "apiType": "telepathy", "baseUrl": "https://example.com", "headers": {}}
        with pytest.raises(PeerError) as error:
            await editor.request_raw("providers/set", unheard_of)
        assert (error.value.code, asked) == (-32602, ["telepathy"])
        assert (await editor.request(v1.ListProvidersRequest())).providers == []


async def test_what_is_declared_can_be_changed(serve):
    agent = Agent("special", capabilities=lambda _: v1.AgentCapabilities(meta={"example.com": True}))
    agent.on_prompt(lambda _: None)
    async with serve(agent) as editor:
        assert editor.agent.agent_capabilities == v1.AgentCapabilities(meta={"example.com": True})


async def test_prompts_may_be_answered_in_the_low_level_s_way(serve):
    agent = Agent("low")

    @agent.on(v1.PromptRequest)
    async def answer(request, context):
        await context.peer.notify(v1.SessionNotification(request.session_id, v1.AgentMessageChunk.of("low")))
        return v1.PromptResponse("end_turn")

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "low"


async def test_one_agent_serves_several_connections(serve, agent):
    async with serve(agent) as one, serve(agent) as other:
        session = await one.open()
        with pytest.raises(PeerError) as raised:
            await other.prompt(session, "go")
        assert raised.value.code == -32002
        assert (await one.prompt(session, "go")).stop_reason == "end_turn"


async def test_a_connection_that_has_ended_leaves_nothing_in_memory(serve, agent):
    peers = []

    @agent.on(Greet)
    def greet(request, context):
        peers.append(weakref.ref(context.peer))
        return Greeting("Hello")

    async with serve(agent) as editor:
        await editor.request(Greet(await editor.open()))
    del editor
    gc.collect()
    assert [peer() for peer in peers] == [None]


async def test_a_handler_that_outlives_its_connection_finds_no_session(serve, agent):
    contexts = []

    @agent.on(Greet)
    def greet(request, context):
        contexts.append(context)
        return Greeting("Hello")

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.request(Greet(session))
    with pytest.raises(RequestError, match="not found"):
        agent.session(contexts[0], session)


@pytest.mark.parametrize("register", ["agent", "remote", "client"])
async def test_a_handler_for_a_message_of_the_other_version_is_refused_where_it_is_registered(agent, register):
    agent = Agent("older", versions=(1,)) if register == "agent" else agent
    problem = "PromptRequest belongs to version 2 of the protocol, and the connection speaks version 1"
    if register == "agent":
        with pytest.raises(ValueError, match=problem):
            agent.on(v2.PromptRequest)
    elif register == "remote":
        async with connect(agent) as remote:
            with pytest.raises(ValueError, match=problem):
                remote.on(v2.PromptRequest)
    else:
        client = Client()
        client.on(v2.PromptRequest)(lambda _: None)
        with pytest.raises(ValueError, match=problem):
            async with connect(agent, client):
                pass


async def test_a_handler_for_a_message_of_both_versions_is_registered(agent):
    assert v2.SessionId is v1.SessionId
    agent.on(v2.ListProvidersRequest)(lambda _: v1.ListProvidersResponse([]))


def test_handlers_for_version_2_refuse_messages_of_version_1_only():
    handlers = Handlers(versions=(2,))
    handlers.on(v2.PromptRequest)
    handlers.on(v1.ListProvidersRequest)
    with pytest.raises(ValueError, match=r"LoadSessionRequest belongs to version 1 .* a class of accord.v2"):
        handlers.on(v1.LoadSessionRequest)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RequestError.parse_error(), -32700, "Parse error"),
        (RequestError.invalid_request(), -32600, "Invalid request"),
        (RequestError.method_not_found("x"), -32601, "Method not found"),
        (RequestError.invalid_params(), -32602, "Invalid params"),
        (RequestError.internal(), -32603, "Internal error"),
        (RequestError.auth_required(), -32000, "Authentication required"),
        (RequestError.not_found(), -32002, "Resource not found"),
        (RequestError.cancelled(), -32800, "Request cancelled"),
    ],
    ids=lambda it: str(it) if isinstance(it, int) else "",
)
async def test_a_handler_answers_with_the_ready_made_error_of_each_code(serve, agent, error, code, message):
    @agent.on(Greet)
    def greet(_):
        raise error

    async with serve(agent) as editor:
        with pytest.raises(PeerError) as raised:
            await editor.request(Greet("s"))
        assert (raised.value.code, raised.value.message) == (code, message)


@pytest.mark.parametrize("version", [1, 2])
async def test_each_side_reads_capabilities_that_the_protocol_does_not_have(version):
    seen = []
    own = {"example.com/colours": {"red": True, "blue": False}}
    agent = Agent("painter", capabilities=lambda declared: with_unknown_members(declared, own))
    client = Client("gallery", capabilities=lambda declared: with_unknown_members(declared, {"example.com/frames": {}}))

    @agent.on_prompt
    async def work(turn):
        seen.append(turn.session.client.capabilities)

    async with connect(agent, client=client, versions=(version,)) as remote:
        session = await remote.new_session("/")
        await session.prompt("go")
        assert unknown_members(remote.capabilities.declared) == own
        paths = ("example.com/colours", "example.com/colours.red", "example.com/colours.blue", "example.com/other")
        assert [remote.capabilities.has(path) for path in paths] == [True, True, False, False]
    assert unknown_members(seen[0].declared) == {"example.com/frames": {}}
    assert seen[0].has("example.com/frames")
