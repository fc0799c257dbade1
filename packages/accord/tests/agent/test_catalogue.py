"""`session/archive`, `unarchive`, `status`, `set_title`, and lists with and without archived sessions."""

import asyncio

import pytest

import accord
from accord import MemoryStore, PeerError, SqliteStore, v1
from tests.agent import feature_agents
from tests.waiting import DEADLINE

METHODS = {
    "session/archive": {},
    "session/unarchive": {},
    "session/status": {},
    "session/set_title": {"title": "T"},
}


async def listed(remote, archived=None):
    return [(info.session_id, info.archived) async for info in remote.sessions(archived=archived)]


# From a client to an agent of ours


async def test_an_archived_session_is_closed_and_left_out_of_lists(reach):
    async with reach("archivist") as remote:
        one, two = await remote.new_session("/"), await remote.new_session("/")
        assert await remote.archive(one.id) == {}
        assert not one.is_open
        assert await listed(remote) == [(two.id, False)]
        assert await listed(remote, "exclude") == [(two.id, False)]
        assert await listed(remote, "only") == [(one.id, True)]
        assert sorted(await listed(remote, "include")) == sorted([(one.id, True), (two.id, False)])
        assert await remote.archive(one.id) == {}  # twice is fine
        assert await remote.unarchive(one.id) == {}
        assert await remote.unarchive(one.id) == {}
        assert len(await listed(remote)) == 2
        assert await listed(remote, "only") == []
        assert (await remote.status(one.id)).status == "saved"  # unarchiving opens nothing


async def test_an_archived_session_can_be_opened_and_stays_archived(reach):
    async with reach("archivist") as remote:
        session = await remote.new_session("/")
        await session.prompt("hello")
        await remote.archive(session.id)
        loaded = await remote.load(session.id, "/")
        assert [message.text for message in loaded.state.messages] == ["hello", "title None"]
        assert (await loaded.prompt("again")).stop_reason == "end_turn"
        assert await listed(remote, "only") == [(session.id, True)]
        copy = await loaded.fork()
        assert await listed(remote) == [(copy.id, False)]


async def test_archiving_a_session_cancels_its_turn(reach):
    async with reach("archivist") as remote:
        session = await remote.new_session("/")
        reply = session.prompt("wait")
        assert await anext(reply.iter_text()) == "waiting"
        await remote.archive(session.id)
        assert (await reply).stop_reason == "cancelled"
        assert (await remote.status(session.id)).status == "saved"


async def test_the_status_of_a_session_says_whether_it_is_open(reach):
    async with reach("archivist") as remote:
        session = await remote.new_session("/")
        assert (await remote.status(session.id)).status == "open"
        await session.close()
        assert (await remote.status(session.id)).status == "saved"
        await remote.load(session.id, "/")
        assert (await remote.status(session.id)).status == "open"


async def test_a_title_is_set_whether_the_session_is_open_or_not(reach):
    async with reach("archivist") as remote:
        session = await remote.new_session("/")
        await session.set_title("  The parser\nand more ")
        assert session.state.title == "The parser"
        assert (await session.prompt("what?")).text == "title The parser"
        assert await remote.set_title(session.id, "Lexer") == "Lexer"
        assert session.state.title == "Lexer"
        await session.close()
        assert await remote.set_title(session.id, "x" * 300) == "x" * 199 + "…"
        assert [info.title async for info in remote.sessions()] == ["x" * 199 + "…"]


# Over the wire


async def test_an_unknown_session_is_answered_with_its_id(scripted):
    async with scripted(feature_agents.archivist()) as client:
        for method, more in METHODS.items():
            error = await client.expect_error(client.call(method, {"sessionId": "nowhere"} | more), -32002)
            assert error["data"] == {"sessionId": "nowhere"}


async def test_a_title_without_any_text_is_refused_and_the_old_one_stays(scripted):
    async with scripted(feature_agents.archivist()) as client:
        session = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        key = {"sessionId": session["sessionId"]}
        call = client.call("session/set_title", key | {"title": "kept"})
        update = await client.expect("session/update")
        assert update["params"]["update"] == {"sessionUpdate": "session_info_update", "title": "kept"}
        assert await client.expect_result(call) == {"title": "kept"}
        for title in ("", "  \n\t", "\x00"):
            await client.expect_error(client.call("session/set_title", key | {"title": title}), -32602)
        assert (await client.request("session/list", {}))["sessions"][0]["title"] == "kept"


async def test_a_filter_that_the_protocol_does_not_have_is_refused_and_null_is_no_filter(scripted):
    async with scripted(feature_agents.archivist()) as client:
        session = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        await client.request("session/archive", session)
        error = await client.expect_error(client.call("session/list", {"archived": "all"}), -32602)
        assert error["data"]["path"] == "$.archived"
        assert (await client.request("session/list", {"archived": None}))["sessions"] == []
        assert len((await client.request("session/list", {"archived": "include"}))["sessions"]) == 1


async def test_archived_is_told_of_every_session_of_a_list(scripted):
    async with scripted(feature_agents.archivist()) as client:
        await client.request("session/new", {"cwd": "/", "mcpServers": []})
        [info] = (await client.request("session/list", {}))["sessions"]
        assert info["archived"] is False


async def test_what_is_only_proposed_is_not_served_by_an_agent_that_does_not_let_it_out(scripted):
    async with scripted(feature_agents.archivist(unstable=False), initialize=False) as client:
        hello = await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        declared = hello["agentCapabilities"]["sessionCapabilities"]
        assert not {"archive", "status", "title", "systemPrompt"} & set(declared)
        assert "status" not in hello["agentCapabilities"].get("auth", {})
        session = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        for method, more in METHODS.items():
            await client.expect_error(client.call(method, session | more), -32601)
        await client.expect_error(client.call("auth/status", {}), -32601)
        assert "archived" not in (await client.request("session/list", {}))["sessions"][0]


async def test_what_is_served_is_declared(scripted):
    async with scripted(feature_agents.archivist(), initialize=False) as client:
        hello = await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        declared = hello["agentCapabilities"]["sessionCapabilities"]
        assert {name: declared[name] for name in ("archive", "status", "title")} == {
            "archive": {},
            "status": {},
            "title": {},
        }
        assert hello["agentCapabilities"]["auth"]["status"] == {}


async def test_a_login_comes_first(serve):
    agent = feature_agents.archivist()
    agent.login("account", "Account")(lambda: None)
    async with serve(agent, unstable=True) as editor:
        for message in (
            v1.ArchiveSessionRequest("a"),
            v1.UnarchiveSessionRequest("a"),
            v1.SessionStatusRequest("a"),
            v1.SetSessionTitleRequest("a", "T"),
        ):
            with pytest.raises(PeerError) as raised:
                await editor.request(message, timeout=DEADLINE)
            assert raised.value.code == -32000


async def test_the_authors_own_handler_goes_before_ours(serve):
    agent, asked = feature_agents.archivist(), []

    @agent.on(v1.ArchiveSessionRequest)
    def archive(request):
        asked.append(request.session_id)

    async with serve(agent) as editor:
        await editor.request(v1.ArchiveSessionRequest("anywhere"), timeout=DEADLINE)
    assert asked == ["anywhere"]


# Several connections


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "sessions.sqlite3")


async def test_a_session_that_another_connection_has_open_is_open_for_all(serve, store):
    agent = feature_agents.archivist(store=store)
    async with serve(agent) as one, serve(agent) as other:
        session = await one.open()
        status = await other.request(v1.SessionStatusRequest(session), timeout=DEADLINE)
        assert status.status == "open"
        await one.request(v1.CloseSessionRequest(session))
        status = await other.request(v1.SessionStatusRequest(session), timeout=DEADLINE)
        assert status.status == "saved"


async def test_a_session_that_has_moved_to_another_connection_stays_open_when_the_first_one_ends(serve, store):
    agent = feature_agents.archivist(store=store)
    async with serve(agent) as other:
        async with serve(agent) as one:
            session = await one.open()
            await other.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
        status = await other.request(v1.SessionStatusRequest(session), timeout=DEADLINE)
        assert status.status == "open"


async def test_a_title_reaches_the_connection_that_has_the_session_open(serve, store):
    agent = feature_agents.archivist(store=store)
    async with serve(agent) as one, serve(agent) as other:
        session = await one.open()
        await other.request(v1.SetSessionTitleRequest(session, "Lexer"), timeout=DEADLINE)
        assert (await one.heard(v1.SessionInfoUpdate)).title == "Lexer"
        await one.prompt(session, "what?")
        assert one.text == "title Lexer"


async def test_archiving_closes_the_session_on_the_connection_that_has_it_open(serve, store):
    agent = feature_agents.archivist(store=store)
    async with serve(agent) as one, serve(agent) as other:
        session = await one.open()
        prompting = asyncio.create_task(one.prompt(session, "wait"))
        await one.heard(v1.AgentMessageChunk)
        await other.request(v1.ArchiveSessionRequest(session), timeout=DEADLINE)
        assert (await prompting).stop_reason == "cancelled"
        with pytest.raises(PeerError) as raised:
            await one.prompt(session, "again")
        assert raised.value.code == -32002


async def test_an_agent_in_another_process_loses_a_session_that_is_archived_but_not_one_that_is_named(serve, tmp_path):
    file = tmp_path / "sessions.sqlite3"
    async with (
        serve(feature_agents.archivist(store=SqliteStore(file))) as one,
        serve(feature_agents.archivist(store=SqliteStore(file))) as other,
    ):
        session = await one.open()
        answer = await other.request(v1.SetSessionTitleRequest(session, "Lexer"), timeout=DEADLINE)
        assert answer.title == "Lexer"
        await one.prompt(session, "go on")
        await other.request(v1.ArchiveSessionRequest(session), timeout=DEADLINE)
        with pytest.raises(PeerError) as raised:
            await one.prompt(session, "go on")
        assert raised.value.data["reason"] == "taken"


async def test_owners_cannot_touch_each_others_sessions(store):
    agent = feature_agents.archivist(store=store)
    session = None
    for owner in ("ada", "eve", "ada"):
        here, there = accord.memory_pair()
        serving = asyncio.create_task(agent.serve(there, owner=owner))
        async with accord.Peer(here, role="client", unstable=True) as peer:
            await peer.initialize(v1.InitializeRequest(1), timeout=DEADLINE)
            if session is None:
                session = (await peer.request(v1.NewSessionRequest("/", []), timeout=DEADLINE)).session_id
            elif owner == "eve":
                for message in (
                    v1.ArchiveSessionRequest(session),
                    v1.UnarchiveSessionRequest(session),
                    v1.SessionStatusRequest(session),
                    v1.SetSessionTitleRequest(session, "stolen"),
                ):
                    with pytest.raises(PeerError) as raised:
                        await peer.request(message, timeout=DEADLINE)
                    assert raised.value.code == -32002
            else:
                [info] = (await peer.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions
                assert (info.title, info.archived) == (None, False)
        await serving


async def test_sessions_that_were_archived_are_not_hidden_by_an_agent_that_archives_no_more(serve, store):
    async with serve(feature_agents.archivist(store=store)) as editor:
        session = await editor.open()
        await editor.request(v1.ArchiveSessionRequest(session), timeout=DEADLINE)
    async with serve(feature_agents.archivist(store=store, unstable=False)) as editor:
        [info] = (await editor.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions
        assert (info.session_id, info.archived) == (session, None)
