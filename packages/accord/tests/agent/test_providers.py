"""Providers on an agent's side: what clients may set, what a turn uses, and that no header is ever shown."""

import asyncio
import logging

import pytest

import accord
from accord import Endpoint, RequestError, v1
from tests.agent import feature_agents

SECRET = "gateway-s3cret"
HEADERS = {"Authorization": f"Bearer {SECRET}"}
GATEWAY = Endpoint("openai", "https://gateway.example/v1", HEADERS)

OWN = {"apiType": "anthropic", "baseUrl": "https://api.example"}
LISTED = [
    {"providerId": "main", "supported": ["anthropic", "openai"], "required": True, "current": OWN},
    {"providerId": "other", "supported": ["_example.com"], "required": False},
]


def setting(provider_id="main", api_type="openai", base_url="https://gateway.example/v1", headers=HEADERS):
    return {"providerId": provider_id, "apiType": api_type, "baseUrl": base_url, "headers": headers}


async def routes(client, key):
    """What the agent says of its providers in a turn."""
    call = client.call("session/prompt", key | {"prompt": [{"type": "text", "text": "where?"}]})
    texts = [(await client.expect("session/update"))["params"]["update"]["content"]["text"] for _ in range(2)]
    await client.expect_result(call)
    return "".join(texts).splitlines()


# From a client to an agent of ours


async def test_a_client_sets_the_providers_of_an_agent(reach):
    async with reach("routed", providers={"main": GATEWAY}) as remote:
        assert remote.capabilities.providers
        session = await remote.new_session("/")
        main, other = (await session.prompt("where?")).text.splitlines()
        assert (
            main == f"Endpoint('openai', 'https://gateway.example/v1', headers=['Authorization']) ['Bearer {SECRET}']"
        )
        assert other == "None None"
        await remote.set_provider("other", Endpoint("_example.com", "http://127.0.0.1:1/"))
        _, other = (await session.prompt("where?")).text.splitlines()
        assert other == "Endpoint('_example.com', 'http://127.0.0.1:1/', headers=[]) []"
        await remote.disable_provider("other")
        assert [(it.provider_id, it.current and it.current.api_type) for it in await remote.providers()] == [
            ("main", "openai"),
            ("other", None),
        ]
        with pytest.raises(ValueError, match="cannot be disabled; the agent requires it"):
            await remote.disable_provider("main")
        with pytest.raises(ValueError, match="has no API of type 'vertex'; it has anthropic, openai"):
            await remote.set_provider("main", Endpoint("vertex", "https://gateway.example/v1"))
        with pytest.raises(accord.PeerError, match="does not accept this endpoint"):
            await remote.set_provider("main", Endpoint("openai", "https://refused.example/"))
        main, _ = (await session.prompt("where?")).text.splitlines()
        assert "gateway.example" in main  # what was refused has changed nothing


# Over the wire


@pytest.mark.requirement("providers.advertised", "providers.disabled-listed", "providers.headers-kept-secret")
async def test_the_providers_are_declared_and_listed_without_headers(scripted):
    async with scripted(feature_agents.routed(), initialize=False) as client:
        hello = await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert hello["agentCapabilities"]["providers"] == {}
        assert await client.request("providers/list", {}) == {"providers": LISTED}
        await client.request("providers/set", setting())
        listed = (await client.request("providers/list", {}))["providers"]
        assert listed[0]["current"] == {"apiType": "openai", "baseUrl": "https://gateway.example/v1"}


async def test_an_agent_without_providers_declares_and_serves_none(scripted):
    agent = accord.Agent("plain", unstable=True)
    agent.on_prompt(lambda _: None)
    async with scripted(agent, initialize=False) as client:
        hello = await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert "providers" not in hello["agentCapabilities"]
        await client.expect_error(client.call("providers/list", {}), -32601)


@pytest.mark.requirement("providers.set-replaces")
async def test_setting_a_provider_replaces_it_as_a_whole(scripted):
    async with scripted(feature_agents.routed()) as client:
        key = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        assert (await routes(client, key))[0].endswith("['own-s3cret']")
        await client.request("providers/set", setting())
        assert (await routes(client, key))[0].endswith(f"['Bearer {SECRET}']")
        without = setting()
        del without["headers"]
        await client.request("providers/set", without)
        assert (await routes(client, key))[0].endswith("headers=[]) []")


@pytest.mark.requirement("providers.disabled-unused", "providers.disable-idempotent", "providers.required-refused")
async def test_a_disabled_provider_is_given_to_no_turn(scripted):
    async with scripted(feature_agents.routed()) as client:
        key = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        other = {"providerId": "other"}
        await client.request("providers/set", setting("other", "_example.com"))
        assert (await routes(client, key))[1] != "None None"
        assert await client.request("providers/disable", other) == {}
        assert (await routes(client, key))[1] == "None None"
        assert await client.request("providers/disable", other) == {}
        assert await client.request("providers/disable", {"providerId": "unknown"}) == {}
        await client.expect_error(client.call("providers/disable", {"providerId": "main"}), -32602)
        assert (await routes(client, key))[0] != "None None"


REFUSED = {
    "an unknown provider": setting("unknown"),
    "a kind of API that it does not have": setting("main", "bedrock"),
    "no URL": setting(base_url="gateway"),
    "another scheme": setting(base_url="file:///etc/passwd"),
    "no host": setting(base_url="https:///v1"),
    "a password in the URL": setting(base_url=f"https://ada:{SECRET}@gateway.example/"),
    "a blank in the URL": setting(base_url="https://gateway.example/a b"),
    "a bad port": setting(base_url="https://gateway.example:port/"),
    "no kind of API": setting(api_type=""),
    "a header of two lines": setting(headers={"Authorization": f"{SECRET}\r\nX: y"}),
    "a header without a name": setting(headers={"": SECRET}),
    "a header that is a number": setting(headers={"Authorization": 5}),
    "headers that are null": setting(headers=None),
    "headers that are a list": setting(headers=[SECRET]),
}


@pytest.mark.requirement("providers.set-invalid", "providers.agent-unknown-protocol")
@pytest.mark.parametrize("params", REFUSED.values(), ids=REFUSED)
async def test_a_setting_that_cannot_be_used_is_refused_and_changes_nothing(scripted, caplog, params):
    async with scripted(feature_agents.routed()) as client:
        error = await client.expect_error(client.call("providers/set", params), -32602)
        assert SECRET not in str(error)
        assert (await client.request("providers/list", {})) == {"providers": LISTED}
    assert SECRET not in caplog.text


async def test_the_older_name_of_a_providers_id_is_read(scripted):
    async with scripted(feature_agents.routed()) as client:
        params = setting()
        params["id"] = params.pop("providerId")
        assert await client.request("providers/set", params) == {}
        assert (await client.request("providers/list", {}))["providers"][0]["current"]["apiType"] == "openai"
        await client.expect_error(client.call("providers/disable", {"id": "main"}), -32602)


@pytest.mark.requirement("providers.not-stored")
async def test_what_a_client_sets_is_kept_neither_for_another_connection_nor_in_the_store(scripted, tmp_path):
    agent = accord.Agent("routed", store=tmp_path / "sessions.sqlite3")
    agent.provider("main", supports=["openai"])

    @agent.on_prompt
    async def answer(turn):
        await turn.say(turn.provider("main").headers["authorization"][:6])

    nothing = {"providers": [{"providerId": "main", "supported": ["openai"], "required": False}]}
    async with scripted(agent) as one:
        await one.request("providers/set", setting())
        async with scripted(agent) as other:
            assert await other.request("providers/list", {}) == nothing
        key = await one.request("session/new", {"cwd": "/", "mcpServers": []})
        call = one.call("session/prompt", key | {"prompt": [{"type": "text", "text": "where?"}]})
        await one.expect("session/update")  # the title
        told = await one.expect("session/update")
        assert told["params"]["update"]["content"]["text"] == "Bearer"
        await one.expect_result(call)
        written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"where?" in written
    assert SECRET.encode() not in written
    async with scripted(agent) as again:
        assert await again.request("providers/list", {}) == nothing


@pytest.mark.requirement("providers.applied-to-new-sessions")
async def test_a_turn_keeps_the_provider_that_it_began_with(scripted):
    agent, goes_on = accord.Agent("slow"), asyncio.Event()
    agent.provider("main", supports=["openai"], default=Endpoint("openai", "https://old.example"))

    @agent.on_prompt
    async def answer(turn):
        if turn.text == "wait":
            await turn.say("waiting")
            await goes_on.wait()
        await turn.say(turn.provider("main").base_url)

    async with scripted(agent) as client:
        key = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        call = client.call("session/prompt", key | {"prompt": [{"type": "text", "text": "wait"}]})
        await client.expect("session/update")
        await client.request("providers/set", setting(base_url="https://new.example"))
        goes_on.set()
        told = await client.expect("session/update")
        assert told["params"]["update"]["content"]["text"] == "https://old.example"
        await client.expect_result(call)
        call = client.call("session/prompt", key | {"prompt": [{"type": "text", "text": "now"}]})
        told = await client.expect("session/update")
        assert told["params"]["update"]["content"]["text"] == "https://new.example"
        await client.expect_result(call)


# The author's check


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_check_refuses_an_endpoint_before_the_answer(scripted, kind):
    agent, seen = accord.Agent("checks"), []
    agent.on_prompt(lambda _: None)
    main = agent.provider("main", supports=["openai"])

    def look(endpoint):
        seen.append(endpoint)
        if "no" in endpoint.base_url:
            raise RequestError.invalid_params(f"the gateway refuses {endpoint.headers['authorization']}")

    async def look_later(endpoint):
        look(endpoint)

    main.check(look if kind == "def" else look_later)
    async with scripted(agent) as client:
        error = await client.expect_error(client.call("providers/set", setting(base_url="https://no.example")), -32602)
        assert error["message"] == "the gateway refuses ***"
        assert "current" not in (await client.request("providers/list", {}))["providers"][0]
        await client.request("providers/set", setting())
        assert seen[1] == GATEWAY


async def test_a_check_that_fails_shows_no_header_to_anyone(scripted, caplog):
    async with scripted(feature_agents.routed()) as client:
        call = client.call("providers/set", setting(base_url="https://broken.example/"))
        error = await client.expect_error(call, -32603)
        assert error["message"] == "The endpoint of the provider could not be checked"
        assert (await client.request("providers/list", {})) == {"providers": LISTED}
    assert "the check of provider main failed: ValueError: 401 for" in caplog.text
    assert SECRET not in caplog.text


async def test_of_two_settings_at_a_time_the_later_one_counts(scripted):
    agent, goes_on = accord.Agent("slow"), asyncio.Event()
    agent.on_prompt(lambda _: None)
    main = agent.provider("main", supports=["openai"])

    @main.check
    async def check(endpoint):
        if "first" in endpoint.base_url:
            await goes_on.wait()

    async with scripted(agent) as client:
        first = client.call("providers/set", setting(base_url="https://first.example"))
        second = client.call("providers/set", setting(base_url="https://second.example"))
        await client.request("providers/list", {})
        goes_on.set()
        await client.expect_result(first)
        await client.expect_result(second)
        [info] = (await client.request("providers/list", {}))["providers"]
        assert info["current"]["baseUrl"] == "https://second.example"


# What authors get wrong


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"supports": []}, "must name at least one kind of API"),
        ({"supports": "openai"}, "takes a list of kinds of API"),
        ({"supports": ["openai"], "default": "https://a.example"}, "takes an Endpoint"),
        (
            {"supports": ["openai"], "default": Endpoint("vertex", "https://a.example")},
            "must have one of the APIs openai",
        ),
    ],
)
def test_a_provider_that_cannot_be_offered_is_refused(options, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        accord.Agent("routed").provider("main", **options)


def test_an_id_is_used_once():
    agent = feature_agents.routed()
    with pytest.raises(ValueError, match="'main' is registered already"):
        agent.provider("main", supports=["openai"])


async def test_a_turn_says_which_providers_there_are(serve):
    agent, raised = feature_agents.routed(), []

    @agent.command("wrong", "Ask for an unknown one")
    def wrong(turn):
        try:
            turn.provider("mian")
        except ValueError as error:
            raised.append(str(error))

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "/wrong")
    assert raised == ["turn.provider() takes one of the agent's providers (main, other), got 'mian'"]


# Nothing shows a header


async def test_a_record_of_the_wire_and_the_log_hold_no_header(reach, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "wire.jsonl"
    async with reach("routed", providers={"main": GATEWAY}, trace=file) as remote:
        await remote.set_provider("main", Endpoint("anthropic", "https://other.example", HEADERS))
        with pytest.raises(accord.PeerError) as raised:
            await remote.set_provider("main", Endpoint("openai", "https://broken.example/", HEADERS))
    assert '"providers/set"' in file.read_text()
    for text in (file.read_text(), caplog.text, str(raised.value), repr(raised.value)):
        assert SECRET not in text


@pytest.mark.parametrize(
    "shown",
    [
        GATEWAY,
        GATEWAY.headers,
        v1.SetProviderRequest("main", "openai", f"https://ada:{SECRET}@a.example/?key={SECRET}", HEADERS),
        accord.Agent("routed").provider("main", supports=["openai"], default=GATEWAY),
    ],
    ids=lambda it: type(it).__name__,
)
def test_no_repr_holds_a_header(shown):
    assert SECRET not in repr(shown)
    assert SECRET not in f"{shown}"


# Between two turns, and instead of a login


async def test_a_session_knows_the_endpoint_between_two_turns():
    agent = accord.Agent("routed")
    agent.provider("main", supports=["openai"], default=Endpoint("openai", "https://old.example"))
    known = []

    @agent.on_session
    async def opened(session):
        known.append(session)

    @agent.on_prompt
    async def answer(turn):
        pass

    async with accord.connect(agent) as remote:
        await remote.new_session("/")
        [session] = known
        assert session.provider("main").base_url == "https://old.example"
        await remote.set_provider("main", Endpoint("openai", "https://new.example"))
        assert session.provider("main").base_url == "https://new.example"
        await remote.disable_provider("main")
        assert session.provider("main") is None
        with pytest.raises(ValueError, match=r"session.provider\(\) takes one of the agent's providers \(main\)"):
            session.provider("mian")


@pytest.mark.parametrize("default", [None, GATEWAY])
async def test_a_provider_that_replaces_the_login_does_so_while_the_client_has_set_it(default):
    agent = accord.Agent("routed")
    agent.provider("main", supports=["openai"], default=default, replaces_login=True)

    @agent.login("key", "Key")
    def log_in():
        return False

    @agent.on_prompt
    async def answer(turn):
        pass

    async with accord.connect(agent) as remote:
        with pytest.raises(accord.PeerError, match="Authentication required"):
            await remote.new_session("/")
        await remote.set_provider("main", Endpoint("openai", GATEWAY.base_url, HEADERS))
        session = await remote.new_session("/")
        await session.prompt("Go")
        await remote.disable_provider("main")
        with pytest.raises(accord.PeerError, match="Authentication required"):
            await session.prompt("Go")
