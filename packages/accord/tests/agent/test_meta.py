"""`_meta` on an agent's side: what requests bring, what answers carry, and what lists say of a session."""

import asyncio
import dataclasses
import inspect
import json
from contextlib import asynccontextmanager

import pytest

import accord
from accord import MemoryStore, SqliteStore, v1
from accord.http import serving
from accord.services.elicitation_service import Elicitation
from tests.agent import feature_agents

SENT = {"_example.com/trace": [1, {"a": None}]}


async def test_what_a_client_sends_is_read_and_answered_from_both_ends(reach):
    async with reach("meta") as remote:
        session = await remote.new_session("/", meta=SENT)
        assert session.meta == {"got": SENT}
        assert (await session.prompt("go", meta=SENT)).meta == {"got": SENT}
        assert (await session.fork(meta={"b": 2})).meta == {"got": {"b": 2}}
        await session.close()
        loaded = await remote.load(session.id, "/", meta={"c": 3})
        assert loaded.meta == {"got": {"c": 3}}
        await loaded.close()
        assert (await remote.resume(session.id, "/")).meta == {"got": {}}


async def test_an_agent_describes_its_sessions_in_lists(reach):
    async with reach("meta") as remote:
        session = await remote.new_session("/")
        await session.prompt("describe")
        assert session.state.meta == {"_example.com/colour": "red"}
        assert [info.meta async for info in remote.sessions()] == [{"_example.com/colour": "red"}]
        await session.prompt("describe again")
        assert session.state.meta == {"_example.com/size": [1]}
        assert [info.meta async for info in remote.sessions()] == [{"_example.com/size": [1]}]
        await session.prompt("describe")
        await session.close()
        resumed = await remote.resume(session.id, "/")
        assert (await resumed.prompt("go")).text == "{'_example.com/colour': 'red'}"
        copy = await resumed.fork()
        await resumed.prompt("forget")
        assert {info.session_id: info.meta async for info in remote.sessions()} == {
            session.id: None,
            copy.id: {"_example.com/colour": "red"},
        }


async def test_a_title_leaves_the_description_as_it_is_and_the_other_way_round(serve):
    agent = feature_agents.meta()

    @agent.command("name", "Give a title")
    async def name(turn):
        await turn.session.set_title("T")

    async with serve(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "describe")
        await editor.prompt(session, "/name")
        [info] = (await editor.request(v1.ListSessionsRequest())).sessions
        assert (info.title, info.meta) == ("T", {"_example.com/colour": "red"})


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_what_lists_say_of_a_session_is_kept_in_the_store(serve, kind, tmp_path):
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "sessions.sqlite3")
    async with serve(feature_agents.meta(store=store)) as editor:
        await editor.prompt(await editor.open(), "describe")
    async with serve(feature_agents.meta(store=store)) as editor:
        [info] = (await editor.request(v1.ListSessionsRequest())).sessions
        assert info.meta == {"_example.com/colour": "red"}


async def test_a_description_that_is_no_dict_is_refused_by_its_argument(serve):
    agent, raised = feature_agents.meta(), []

    @agent.command("wrong", "Describe wrongly")
    async def wrong(turn):
        try:
            await turn.session.set_info_meta(["red"])
        except TypeError as error:
            raised.append(str(error))

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "/wrong")
    assert raised == ["session.set_info_meta() takes a dict of JSON values by name, got list ['red']"]


@dataclasses.dataclass
class Form:
    colour: str = "red"


async def in_a_tool(turn):
    async with turn.tool("Look", meta=SENT):
        pass


async def change_a_tool(turn):
    async with turn.tool("Look") as tool:
        await tool.set_meta(SENT)


async def in_a_question_of_a_tool(turn):
    async with turn.tool("Look") as tool:
        await tool.ask(meta=SENT)


async def a_message(turn):
    await turn.message("Hello", meta=SENT)


async def replace_a_message(turn):
    message = await turn.message("Hello")
    await message.replace("Good day", meta=SENT)


async def a_step(turn):
    await turn.plan("Read", meta=SENT)


async def a_subagent(turn):
    async with turn.subagent("Look", meta=SENT):
        pass


async def a_command(turn):
    await turn.session.commands.offer("greet", "Greets", print, meta=SENT)


async def read_a_file(turn):
    await turn.client.read_text_file(turn.cwd / "a.txt", meta=SENT)


async def write_a_file(turn):
    await turn.client.write_text_file(turn.cwd / "a.txt", "text", meta=SENT)


async def run_a_command(turn):
    await turn.client.run("true", meta=SENT)


SAID = {
    "say": lambda turn: turn.say("Hello", meta=SENT),
    "think": lambda turn: turn.think("Hm", meta=SENT),
    "say_as_user": lambda turn: turn.say_as_user("Hello", meta=SENT),
    "message": a_message,
    "plan": a_step,
    "plan_document": lambda turn: turn.plan_document("# Plan", meta=SENT),
    "tool": in_a_tool,
    "set_meta": change_a_tool,
    "subagent": a_subagent,
    "usage": lambda turn: turn.usage(1, 2, meta=SENT),
    "turn.notice": lambda turn: turn.notice("Look", meta=SENT),
    "session.notice": lambda turn: turn.session.notice("Look", meta=SENT),
    "command": a_command,
    "ask": lambda turn: turn.ask("Go on?", meta=SENT),
    "elicit": lambda turn: turn.elicit("Which?", Form, meta=SENT),
    "elicit_url": lambda turn: turn.elicit_url("Open this", "https://example.com/", meta=SENT),
    "tool.ask": in_a_question_of_a_tool,
    "replace": replace_a_message,
    "set_info_meta": lambda turn: turn.session.set_info_meta(SENT),
    "write_text_file": write_a_file,
    "read_text_file": read_a_file,
    "terminal": run_a_command,
}
"""What an agent says, each with `_meta`."""

LENT = ("read_text_file", "write_text_file", "terminal")
"""What only version 1 has."""


async def fill_in(question):
    return {"colour": "blue"}


async def decide(question):
    return True


@asynccontextmanager
async def reached(way, agent, version, trace, **options):
    """A connection with this agent: in memory, behind a proxy, or served."""
    client = accord.Client(
        files=True, terminals=True, permissions=decide, elicitation=Elicitation(fill_in, decide), meta=SENT
    )
    if way == "served":
        async with (
            serving(agent) as server,
            accord.connect(server.url, client, versions=(version,), trace=trace, **options) as remote,
        ):
            yield remote
    else:
        target = accord.chain(accord.Proxy("between"), agent) if way == "proxy" else agent
        async with accord.connect(target, client, versions=(version,), trace=trace, **options) as remote:
            yield remote


def has(value):
    """Whether some `_meta` in this JSON is what was sent."""
    if isinstance(value, dict):
        meta = value.get("_meta")
        return (isinstance(meta, dict) and meta.items() >= SENT.items()) or any(map(has, value.values()))
    return isinstance(value, list) and any(map(has, value))


@pytest.mark.parametrize("way", ["memory", "proxy", "served"])
@pytest.mark.parametrize("version", [1, 2])
async def test_whatever_an_agent_says_carries_meta(version, way, tmp_path):
    seen, client_metas = [], []
    agent = accord.Agent("says", versions=(version,), meta=SENT)

    @agent.on_prompt
    async def work(turn):
        client_metas.append(turn.client.meta)
        await SAID[turn.text](turn)

    async with reached(way, agent, version, seen.append) as remote:
        assert remote.meta.items() >= SENT.items()
        session = await remote.new_session(tmp_path)
        for name in SAID:
            if version == 2 and name in LENT:
                continue
            seen.clear()
            await session.prompt(name)
            assert any(it.direction == "in" and it.frame and has(json.loads(it.frame)) for it in seen), name
    assert all(meta == SENT for meta in client_metas)


def asked_of(agent):
    """Let clients ask this agent for whatever they can."""
    agent.provider("main", supports=["openai"])

    @agent.login("key", "Key")
    async def log_in():
        return True

    @agent.on_logout
    async def log_out():
        pass

    @agent.on_session
    async def offer(session):
        await session.modes.offer([("one", "One"), ("two", "Two")])
        await session.config.offer("size", "Size", [("s", "S"), ("l", "L")])

    @agent.on_prompt
    async def wait_if_asked(turn):
        await turn.say("Hello")
        if turn.text == "wait":
            await asyncio.Event().wait()

    return agent


ENDPOINT = accord.Endpoint("openai", "http://127.0.0.1:1/")


async def listed(remote, _):
    return [it async for it in remote.sessions(meta=SENT)]


async def again(remote, session, open_it):
    await session.close()
    return await open_it(session.id, "/", meta=SENT)


async def cancelled(session, *, by_reply):
    reply = session.prompt("wait")
    await anext(aiter(reply))
    await (reply if by_reply else session).cancel(meta=SENT)
    await reply


ASKED = {
    "RemoteAgent": {
        "new_session": lambda remote, _: remote.new_session("/", meta=SENT),
        "load": lambda remote, session: again(remote, session, remote.load),
        "resume": lambda remote, session: again(remote, session, remote.resume),
        "watch": lambda remote, session: again(remote, session, remote.watch),
        "sessions": listed,
        "status": lambda remote, session: remote.status(session.id, meta=SENT),
        "options": lambda remote, _: remote.options("/", meta=SENT),
        "set_title": lambda remote, session: remote.set_title(session.id, "T", meta=SENT),
        "archive": lambda remote, session: remote.archive(session.id, meta=SENT),
        "unarchive": lambda remote, session: remote.unarchive(session.id, meta=SENT),
        "delete": lambda remote, session: remote.delete(session.id, meta=SENT),
        "login": lambda remote, _: remote.login("key", meta=SENT),
        "logout": lambda remote, _: remote.logout(meta=SENT),
        "auth_status": lambda remote, _: remote.auth_status(meta=SENT),
        "providers": lambda remote, _: remote.providers(meta=SENT),
        "set_provider": lambda remote, _: remote.set_provider("main", ENDPOINT, meta=SENT),
        "disable_provider": lambda remote, _: remote.disable_provider("main", meta=SENT),
    },
    "RemoteSession": {
        "prompt": lambda _, session: session.prompt("go", meta=SENT),
        "cancel": lambda _, session: cancelled(session, by_reply=False),
        "fork": lambda _, session: session.fork(meta=SENT),
        "set_mode": lambda _, session: session.set_mode("two", meta=SENT),
        "set_config": lambda _, session: session.set_config("size", "l", meta=SENT),
        "set_title": lambda _, session: session.set_title("T", meta=SENT),
        "close": lambda _, session: session.close(meta=SENT),
    },
    "Reply": {"cancel": lambda _, session: cancelled(session, by_reply=True)},
}
"""What a client asks, each with `_meta`, by the class that has it."""


@pytest.mark.parametrize("way", ["memory", "proxy", "served"])
@pytest.mark.parametrize("version", [1, 2])
async def test_whatever_a_client_asks_carries_meta(version, way, tmp_path):
    seen, lacking = [], []
    agent = asked_of(accord.Agent("asked", versions=(version,), unstable=True, store=MemoryStore()))
    async with reached(way, agent, version, seen.append, unstable=True) as remote:
        for calls in ASKED.values():
            for name, call in calls.items():
                await remote.login("key")
                session = await remote.new_session("/")
                seen.clear()
                await call(remote, session)
                if not any(it.direction == "out" and it.frame and has(json.loads(it.frame)) for it in seen):
                    lacking.append(name)
    assert lacking == []


def takes_meta(cls):
    """Return the public methods with `meta`."""
    methods = {name: it for name, it in inspect.getmembers(cls, inspect.isroutine) if not name.startswith("_")}
    return {name for name, it in methods.items() if "meta" in inspect.signature(it).parameters}


def test_the_tables_have_every_call_that_takes_meta():
    for name, calls in ASKED.items():
        legacy = {"set_model"} if name == "RemoteSession" else set()  # of version 1; test_meta of the client has it
        assert takes_meta(getattr(accord, name)) == calls.keys() | legacy
    said = {it.rpartition(".")[2] for it in SAID}
    turns = takes_meta(accord.Turn) | takes_meta(accord.Session)
    assert turns <= said
