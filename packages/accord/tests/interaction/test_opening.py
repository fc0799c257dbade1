"""What comes before `initialize`, what `initialize` settles, and what may be sent afterwards."""

from __future__ import annotations

import asyncio

import pytest

from accord.engine.handlers import Handlers
from accord.errors import CapabilityMissing, PeerError, ProtocolError
from accord.schema import v1, v2
from accord.schema.base import Unknown
from tests.interaction.staging import ask, declaring, forever, prompt_params, tell
from tests.interaction.versions import spoken

INVALID_REQUEST = -32600


def gated(handlers, stage):
    attempts = []

    @handlers.on(spoken.InitializeRequest)
    async def initialize(request):
        stage.tell("opening")
        attempts.append(request)
        await stage.cue("open")
        if len(attempts) == 1 and request.meta is not None:
            raise ValueError("not at the first attempt")
        return spoken.welcomed()

    @handlers.on(spoken.NewSessionRequest)
    def new(request):
        stage.tell("new session")
        return spoken.NewSessionResponse(session_id=spoken.SessionId("s"))

    @handlers.on_notification("_example.com/news")
    def news(params):
        stage.tell("news", number=params["number"])


NEW = {"cwd": "/", "mcpServers": []}


@pytest.mark.uvloop
@pytest.mark.requirement("initialize.no-session-before", "jsonrpc.error.invalid-request")
@pytest.mark.parametrize("method", ["session/new", "_example.com/anything", "authenticate"])
async def test_a_request_before_initialize_is_refused(connect, method):
    async with connect.as_client(gated, initialize=False) as script:
        error = await script.expect_error(script.call(method, NEW), INVALID_REQUEST)
        assert "initialize" in error["message"]
        script.cue("open")
        await script.initialize()
        assert await script.curtain() == ["opening"]


async def test_a_notification_before_initialize_is_ignored(connect):
    async with connect.as_client(gated, initialize=False) as script:
        script.tell("_example.com/news", {"number": 1})
        script.tell("session/cancel", {"sessionId": "s"})
        await script.expect_silence()
        script.cue("open")
        await script.initialize()
        script.tell("_example.com/news", {"number": 2})
        assert await script.told("news") == {"number": 2}


async def test_what_comes_behind_an_unanswered_initialize_waits_for_it_and_keeps_its_order(connect):
    async with connect.as_client(gated, initialize=False) as script:
        script.send(
            ask("initialize", 1, **spoken.hello),
            tell("_example.com/news", number=1),
            ask("session/new", 2, **NEW),
            tell("_example.com/news", number=2),
            ask("_example.com/unknown", 3),
        )
        await script.told("opening")
        assert script.story == ["opening"]
        script.cue("open")
        await script.expect_result(1)
        assert await script.expect_result(2) == {"sessionId": "s"}
        await script.expect_error(3, -32601)
        assert await script.told("news") == {"number": 1}
        assert await script.told("news") == {"number": 2}
        assert await script.curtain() == ["opening", "news", "new session", "news"]


async def test_what_comes_with_an_initialize_that_takes_no_time_is_handled_behind_it(connect):
    async with connect.as_client(typed, initialize=False) as script:
        script.send(ask("initialize", 1, **spoken.hello), ask("session/prompt", 2, **prompt_params("hello")))
        assert (await script.expect_result(1))["protocolVersion"] == spoken.version
        assert await script.expect_result(2) == spoken.ending()


@pytest.mark.requirement("jsonrpc.error.invalid-request")
async def test_a_second_initialize_is_refused_during_the_first_and_after_it(connect):
    async with connect.as_client(gated, initialize=False) as script:
        script.send(ask("initialize", 1, **spoken.hello), ask("initialize", 2, **spoken.hello))
        await script.expect_error(2, INVALID_REQUEST)
        script.cue("open")
        await script.expect_result(1)
        await script.expect_error(script.call("initialize", spoken.hello), INVALID_REQUEST)
        assert await script.request("session/new", NEW) == {"sessionId": "s"}


async def test_an_initialize_that_fails_refuses_what_waited_and_may_be_tried_again(connect):
    async with connect.as_client(gated, initialize=False) as script:
        fails = {"_meta": {"fails": True}}
        script.send(ask("initialize", 1, **spoken.hello, **fails), ask("session/new", 2, **NEW))
        script.cue("open")
        await script.expect_error(1, -32603)
        await script.expect_error(2, INVALID_REQUEST)
        script.cue("open")
        await script.request("initialize", spoken.hello | fails)
        assert await script.request("session/new", NEW) == {"sessionId": "s"}


def closes_while_it_opens(handlers, stage):
    @handlers.on(spoken.InitializeRequest)
    async def initialize(request, context):
        await stage.cue("close")
        await context.peer.close()
        await forever()


@pytest.mark.needs("a link before initialize")
async def test_what_waits_behind_initialize_is_answered_when_the_link_ends_first(connect):
    async with connect.as_client(closes_while_it_opens, initialize=False) as script:
        script.send(ask("initialize", 1, **spoken.hello), ask("session/new", 2, **NEW), tell("_example.com/news"))
        script.cue("close")
        await script.expect_error(1, -32800)
        await script.expect_error(2, INVALID_REQUEST)
        await script.expect_end()


@pytest.mark.parametrize("params", [{}, {"protocolVersion": "1"}, {"protocolVersion": 1.5}, {"protocolVersion": -1}])
async def test_an_initialize_whose_params_do_not_fit_leaves_the_gate_shut(connect, params):
    async with connect.as_client(gated, initialize=False) as script:
        await script.expect_error(script.call("initialize", params), -32602)
        await script.expect_error(script.call("session/new", NEW), INVALID_REQUEST)
        script.cue("open")
        await script.initialize()


@pytest.mark.needs("a link before initialize")
async def test_a_client_has_no_gate(connect):
    client = Handlers()
    client.on_request("_example.com/early")(lambda _: {"fine": True})
    async with connect.as_agent(client, initialize=False) as (script, _):
        assert await script.request("_example.com/early") == {"fine": True}


# Without the classes of version 1: as in a proxy, and with version 2


def routes_by_method(handlers, stage):
    @handlers.on_request("initialize")
    def initialize(params):
        return {"protocolVersion": 1}

    @handlers.on_other
    def other(method, params, context):
        return {"method": method}


async def test_a_handler_without_a_class_opens_the_gate_once(connect):
    async with connect.as_client(routes_by_method, initialize=False) as script:
        await script.expect_error(script.call("session/new", NEW), INVALID_REQUEST)
        await script.request("initialize", spoken.hello)
        assert await script.request("session/new", NEW) == {"method": "session/new"}
        await script.expect_error(script.call("initialize", spoken.hello), INVALID_REQUEST)


def routes_as_a_proxy(handlers, stage):
    @handlers.on_request("proxy/initialize")
    async def initialize(params):
        return {"protocolVersion": 1}

    @handlers.on_notification("_example.com/news")
    def news(params):
        stage.tell("news", number=params["number"])


@pytest.mark.needs("a link before initialize")
@pytest.mark.parametrize("method", ["proxy/initialize", "_proxy/initialize"])
async def test_a_proxy_s_handshake_opens_the_gate_under_each_of_its_names(connect, method):
    async with connect.as_client(routes_as_a_proxy, initialize=False) as script:
        script.send(ask(method, 1, **spoken.hello), tell("_example.com/news", number=1))
        await script.expect_result(1)
        assert await script.told("news") == {"number": 1}
        await script.expect_error(script.call("proxy/initialize", spoken.hello), INVALID_REQUEST)


def speaks_version_2(handlers, stage):
    @handlers.on(v2.InitializeRequest)
    def initialize(request, context):
        has = context.peer.capabilities.has
        stage.tell("client", auth=has("auth"), fs=has("fs.read_text_file"))
        return v2.InitializeResponse(2, v2.Implementation("agent", "1"))


async def test_the_handshake_of_version_2_opens_the_gate_and_says_what_the_client_can_do(connect):
    async with connect.as_client(speaks_version_2, initialize=False) as script:
        info = {"name": "client", "version": "1"}
        declared = {"auth": {"terminal": {}}}
        script.send(
            ask("initialize", 1, protocolVersion=2, info=info, capabilities=declared),
            ask("_example.com/unknown", 2),
        )
        await script.expect_result(1)
        await script.expect_error(2, -32601)
        assert await script.told("client") == {"auth": True, "fs": False}


# The version


@pytest.mark.needs("Peer.initialize")
@pytest.mark.requirement("initialize.version.integer", "initialize.version.agreed-is-spoken")
@pytest.mark.parametrize("version", [0, 2, 65535])
async def test_a_client_refuses_a_version_that_it_did_not_offer(connect, version):
    async with connect.as_agent(initialize=False) as (script, peer):
        opening = asyncio.create_task(peer.initialize(v1.InitializeRequest(1)))
        call = await script.expect("initialize")
        assert call["params"]["protocolVersion"] == 1
        script.answer(call, {"protocolVersion": version})
        await asyncio.wait([opening])
        assert isinstance(opening.exception(), ProtocolError)
        assert f"version {version} " in str(opening.exception())
        assert peer.capabilities.declared is None


@pytest.mark.needs("Peer.initialize")
async def test_a_version_that_is_no_number_makes_no_sense(connect):
    async with connect.as_agent(initialize=False) as (script, peer):
        opening = asyncio.create_task(peer.initialize(v1.InitializeRequest(1)))
        script.answer(await script.expect("initialize"), {"protocolVersion": "1.0"})
        await asyncio.wait([opening])
        assert isinstance(opening.exception(), ProtocolError)
        assert "$.protocolVersion" in str(opening.exception())


@pytest.mark.needs("Peer.initialize")
async def test_an_agent_may_refuse_to_open(connect):
    async with connect.as_agent(initialize=False) as (script, peer):
        opening = asyncio.create_task(peer.initialize(v1.InitializeRequest(1)))
        script.error(await script.expect("initialize"), -32022, "no such version", {"supported": [2]})
        await asyncio.wait([opening])
        assert isinstance(opening.exception(), PeerError)
        assert opening.exception().data == {"supported": [2]}


# Capabilities


@declaring(
    v1.AgentCapabilities(
        load_session=True, session_capabilities=v1.SessionCapabilities(list=v1.SessionListCapabilities())
    )
)
def asks_about_the_client(handlers, stage):
    @handlers.on_request("_example.com/what")
    def what(params, context):
        return {path: context.peer.capabilities.has(path) for path in params["paths"]}

    @handlers.on_request("_example.com/read")
    async def read(params, context):
        try:
            await context.peer.request(spoken.question("s", "/f"), force=params["force"])
        except CapabilityMissing as error:
            return {"missing": error.capability}
        return {}


@pytest.mark.needs("capabilities of version 1")
@pytest.mark.uvloop
async def test_both_sides_can_ask_what_the_other_declared(connect):
    declared = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True))
    async with connect(asks_about_the_client, declare=declared) as link:
        assert link.client.capabilities.has("load_session")
        assert link.client.capabilities.has("session_capabilities.list")
        assert not link.client.capabilities.has("session_capabilities.fork")
        assert not link.client.capabilities.has("prompt_capabilities.image")
        assert not link.client.capabilities.has("no.such.thing")
        paths = ["fs.read_text_file", "fs.write_text_file", "terminal"]
        answer = await link.client.request_raw("_example.com/what", {"paths": paths})
        assert answer == {"fs.read_text_file": True, "fs.write_text_file": False, "terminal": False}


@pytest.mark.needs("a link before initialize", "capabilities of version 1")
async def test_before_initialize_nothing_is_there(connect):
    async with connect.as_agent(initialize=False) as (script, peer):
        assert not peer.capabilities.has("load_session")
        with pytest.raises(CapabilityMissing):
            await peer.request(v1.ListSessionsRequest())
        await script.expect_silence()


@pytest.mark.needs("capabilities of version 1")
async def test_calling_what_was_not_declared_is_refused_here_and_says_what_is_missing(connect):
    async with connect.as_agent(capabilities=v1.AgentCapabilities()) as (script, peer):
        with pytest.raises(CapabilityMissing) as caught:
            await peer.request(v1.LoadSessionRequest(session_id=v1.SessionId("s"), cwd="/", mcp_servers=[]))
        assert caught.value.capability == "load_session"
        assert "session/load" in str(caught.value)
        await script.expect_silence()


async def test_what_was_not_declared_goes_out_when_it_is_forced(connect):
    async with connect.as_agent(capabilities=v1.AgentCapabilities()) as (script, peer):
        asking = asyncio.create_task(peer.request(v1.ListSessionsRequest(), force=True))
        script.answer(await script.expect("session/list"), {"sessions": []})
        assert (await asking).sessions == []


@pytest.mark.needs("capabilities of version 1")
async def test_an_agent_calls_only_what_the_client_declared(connect):
    async with connect(asks_about_the_client) as link:
        answer = await link.client.request_raw("_example.com/read", {"force": False})
        assert answer == {"missing": "fs.read_text_file"}
        with pytest.raises(PeerError):
            await link.client.request_raw("_example.com/read", {"force": True})


@pytest.mark.parametrize(
    ("request_of_ours", "capability"),
    [
        (v1.ForkSessionRequest(session_id=v1.SessionId("s"), cwd="/"), "session_capabilities.fork"),
        (v1.SetSessionTitleRequest(session_id=v1.SessionId("s"), title="t"), "session_capabilities.title"),
        (v1.ListSessionsRequest(archived="only"), "session_capabilities.archive"),
    ],
    ids=["a method", "another", "a field"],
)
@pytest.mark.needs("capabilities of version 1")
async def test_nothing_unstable_goes_out_without_its_capability(connect, request_of_ours, capability):
    listing = v1.SessionCapabilities(list=v1.SessionListCapabilities())
    async with connect.as_agent(capabilities=v1.AgentCapabilities(session_capabilities=listing)) as (script, peer):
        with pytest.raises(CapabilityMissing) as caught:
            await peer.request(request_of_ours)
        assert caught.value.capability == capability
        await script.expect_silence()


@pytest.mark.needs("capabilities of version 1")
async def test_what_is_unstable_goes_out_when_its_capability_was_declared(connect):
    declared = v1.SessionCapabilities(fork=v1.SessionForkCapabilities())
    async with connect.as_agent(capabilities=v1.AgentCapabilities(session_capabilities=declared)) as (script, peer):
        asking = asyncio.create_task(peer.request(v1.ForkSessionRequest(session_id=v1.SessionId("s"), cwd="/")))
        script.answer(await script.expect("session/fork"), {"sessionId": "t"})
        assert (await asking).session_id == "t"


@pytest.mark.needs("Peer.initialize")
@pytest.mark.requirement("capabilities.unknown-harmless")
async def test_capabilities_that_nobody_knows_and_bad_ones_are_harmless(connect):
    async with connect.as_agent(initialize=False) as (script, peer):
        opening = asyncio.create_task(peer.initialize(v1.InitializeRequest(1)))
        declared = {"telepathy": {"range": 5}, "loadSession": True, "promptCapabilities": "many", "mcpCapabilities": 5}
        call = await script.expect("initialize")
        script.answer(call, {"protocolVersion": 1, "agentCapabilities": declared, "surprise": [1]})
        await opening
        assert peer.capabilities.has("load_session")
        assert not peer.capabilities.has("prompt_capabilities.image")


def knows_what_came(handlers, stage):
    @handlers.on(v1.InitializeRequest)
    def initialize(request, context):
        stage.tell(
            "client", fs=request.client_capabilities.fs.read_text_file, terminal=request.client_capabilities.terminal
        )
        return v1.InitializeResponse(1)


@pytest.mark.needs("capabilities of version 1")
@pytest.mark.requirement("capabilities.unknown-harmless", "meta.nothing-assumed")
async def test_an_agent_takes_what_a_client_declares_tolerantly(connect):
    async with connect.as_client(knows_what_came, initialize=False) as script:
        declared = {"fs": {"readTextFile": True, "teleport": 1}, "terminal": "perhaps", "hologram": {}, "_meta": 5}
        await script.request("initialize", spoken.hello | {"clientCapabilities": declared, "_meta": {"a": [1]}})
        assert await script.told("client") == {"fs": True, "terminal": False}


async def test_an_update_of_an_unknown_kind_reaches_its_handler_as_it_came(connect):
    client, updates = Handlers(), []

    @client.on(spoken.SessionNotification)
    def update(notification):
        updates.append(notification.update)

    async with connect.as_agent(client) as (script, _):
        raw = {"sessionUpdate": "hologram", "depth": 3}
        script.tell("session/update", {"sessionId": "s", "update": raw})
        await script.expect_silence()
        assert updates == [Unknown("hologram", raw)]


async def test_params_are_one_object_that_nothing_in_meta_overwrites(connect):
    client, requests = Handlers(), []

    @client.on(spoken.QuestionRequest)
    def read(request):
        requests.append(request)
        return spoken.told("text")

    async with connect.as_agent(client) as (script, _):
        meta = {"path": "/etc/passwd", "sessionId": "other", "_meta": 1}
        await script.request(spoken.question_method, spoken.question_params("s", "/f", _meta=meta))
        assert (spoken.topic(requests[0]), requests[0].session_id, requests[0].meta) == ("/f", "s", meta)


async def test_a_prompt_is_typed_on_both_sides(connect):
    async with connect(typed) as link:
        answer = await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "hello"))
        assert isinstance(answer, spoken.PromptResponse)
        assert await link.told("prompt") == {"type": "PromptRequest", "text": "hello"}


def typed(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request):
        stage.tell("prompt", type=type(request).__name__, text=request.prompt[0].text)
        return spoken.ended("end_turn")


async def test_a_stop_reason_that_nobody_knows_is_kept(connect):
    async with connect.as_agent() as (script, peer):
        asking = asyncio.create_task(peer.request_raw("session/prompt", prompt_params()))
        typed_asking = asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go")))
        for _ in range(2):
            script.answer(await script.expect("session/prompt"), spoken.ending("bored"))
        assert await asking == spoken.ending("bored")
        assert spoken.end_of(await typed_asking) == "bored"
