"""`_meta` on an agent's side: what requests bring, what answers carry, and what lists say of a session."""

import asyncio
import dataclasses
import inspect
import json
import sys
from contextlib import asynccontextmanager

import msgspec
import pytest

import accord
from accord import MemoryStore, SqliteStore, v1
from accord.agent.agent_suggestions import SuggestionRequest
from accord.agent.plan import PlanDocument, TurnPlan
from accord.agent.remote_client import RemoteClient, RemoteTerminal
from accord.agent.session import RunningCompaction
from accord.agent.session_config import Commands, Config, Models, Modes
from accord.agent.subagent import Subagent
from accord.agent.tool import Tool, ToolCommand
from accord.agent.turn import SentMessage
from accord.agent.user_questions import Decision, Elicited, ElicitedUrl
from accord.agent.workspace import TurnFiles
from accord.client.remote_subagent import RemoteSubagent
from accord.client.suggested_edits import OpenDocument, Suggestion, Suggestions
from accord.http import serving
from accord.schema.methods import methods
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


# Whatever an agent says: each call with `_meta`, by the class that has it.


def in_a_tool(call):
    async def say(turn, meta):
        async with turn.tool("Look") as tool:
            await call(tool, meta)

    return say


def with_a_plan(call):
    async def say(turn, meta):
        await call(await turn.plan("Read", "Write"), meta)

    return say


def in_a_subagent(call):
    async def say(turn, meta):
        async with turn.subagent("Look", "Look for it") as subagent:
            await call(subagent, meta)

    return say


def in_a_compaction(call):
    async def say(turn, meta):
        async with turn.session.compaction() as compaction:
            await call(compaction, meta)

    return say


def with_a_terminal(call):
    async def say(turn, meta):
        async with turn.client.terminal("true") as terminal:
            await call(terminal, meta)

    return say


async def a_tool(turn, meta):
    async with turn.tool("Look", meta=meta):
        pass


async def a_step(plan, meta):
    async with plan.step(1, meta=meta):
        pass


async def a_subagent(turn, meta):
    async with turn.subagent("Look", meta=meta):
        pass


async def a_compaction(turn, meta):
    async with turn.session.compaction(meta=meta):
        pass


async def a_terminal(tool, meta):
    async with tool.command([sys.executable, "-c", "print(1)"], meta=meta) as command:
        await command.wait()


async def a_terminal_of_the_client(tool, meta):
    async with tool._client.terminal("true") as terminal:
        await tool.terminal(terminal, meta=meta)


async def tokens(turn, meta):
    turn.tokens(1, 2, meta=meta)


async def replaced(turn, meta):
    message = await turn.message("Hello")
    await message.replace("Good day", meta=meta)


async def completed(turn, meta):
    await (await turn.elicit_url("Open this", "https://example.com/")).complete(meta=meta)


async def a_client_terminal(turn, meta):
    async with turn.client.terminal("true", meta=meta):
        pass


OPTION = ("size", "Size", [("s", "S"), ("l", "L")])

SAID = {
    accord.Turn: {
        "say": lambda turn, meta: turn.say("Hello", meta=meta),
        "think": lambda turn, meta: turn.think("Hm", meta=meta),
        "say_as_user": lambda turn, meta: turn.say_as_user("Hello", meta=meta),
        "message": lambda turn, meta: turn.message("Hello", meta=meta),
        "plan": lambda turn, meta: turn.plan("Read", meta=meta),
        "plan_document": lambda turn, meta: turn.plan_document("# Plan", meta=meta),
        "tool": a_tool,
        "subagent": a_subagent,
        "usage": lambda turn, meta: turn.usage(1, 2, meta=meta),
        "tokens": tokens,
        "notice": lambda turn, meta: turn.notice("Look", meta=meta),
        "ask": lambda turn, meta: turn.ask("Go on?", meta=meta),
        "elicit": lambda turn, meta: turn.elicit("Which?", Form, meta=meta),
        "elicit_url": lambda turn, meta: turn.elicit_url("Open this", "https://example.com/", meta=meta),
    },
    SentMessage: {"replace": replaced},
    accord.Session: {
        "notice": lambda turn, meta: turn.session.notice("Look", meta=meta),
        "set_info_meta": lambda turn, meta: turn.session.set_info_meta(meta),
        "suggest": lambda turn, meta: turn.session.suggest("Go on", meta=meta),
        "compaction": a_compaction,
    },
    Tool: {
        "text": in_a_tool(lambda tool, meta: tool.text("a", meta=meta)),
        "content": in_a_tool(lambda tool, meta: tool.content("a", meta=meta)),
        "diff": in_a_tool(lambda tool, meta: tool.diff("a.txt", "a\n", "b\n", meta=meta)),
        "terminal": in_a_tool(a_terminal_of_the_client),
        "command": in_a_tool(a_terminal),
        "set_meta": in_a_tool(lambda tool, meta: tool.set_meta(meta)),
        "ask": in_a_tool(lambda tool, meta: tool.ask(meta=meta)),
        "elicit": in_a_tool(lambda tool, meta: tool.elicit("Which?", Form, meta=meta)),
        "elicit_url": in_a_tool(lambda tool, meta: tool.elicit_url("Open", "https://example.com/", meta=meta)),
    },
    TurnPlan: {
        "add": with_a_plan(lambda plan, meta: plan.add("Think", meta=meta)),
        "mark": with_a_plan(lambda plan, meta: plan.mark(0, "completed", meta=meta)),
        "start": with_a_plan(lambda plan, meta: plan.start("Write", meta=meta)),
        "done": with_a_plan(lambda plan, meta: plan.done("Read", meta=meta)),
        "step": with_a_plan(a_step),
    },
    Subagent: {
        "retitle": in_a_subagent(lambda subagent, meta: subagent.retitle("Found", meta=meta)),
        "instruct": in_a_subagent(lambda subagent, meta: subagent.instruct("More", meta=meta)),
        "report": in_a_subagent(lambda subagent, meta: subagent.report("Two", meta=meta)),
    },
    RunningCompaction: {
        "summary": in_a_compaction(lambda compaction, meta: compaction.summary("So far", meta=meta)),
        "fail": in_a_compaction(lambda compaction, meta: compaction.fail("Too long", meta=meta)),
    },
    Commands: {"offer": lambda turn, meta: turn.session.commands.offer("greet", "Greets", print, meta=meta)},
    Config: {
        "offer": lambda turn, meta: turn.session.config.offer(*OPTION, meta=meta),
        "set": lambda turn, meta: turn.session.config.set("speed", "l", meta=meta),
    },
    Modes: {
        "offer": lambda turn, meta: turn.session.modes.offer(["one", "two"], meta=meta),
        "set": lambda turn, meta: turn.session.modes.set("two", meta=meta),
    },
    Models: {
        "offer": lambda turn, meta: turn.session.models.offer(["one", "two"], meta=meta),
        "set": lambda turn, meta: turn.session.models.set("two", meta=meta),
    },
    TurnFiles: {
        "read": lambda turn, meta: turn.files.read("a.txt", meta=meta),
        "write": lambda turn, meta: turn.files.write("a.txt", "text", meta=meta),
    },
    RemoteClient: {
        "read_text_file": lambda turn, meta: turn.client.read_text_file("a.txt", meta=meta),
        "write_text_file": lambda turn, meta: turn.client.write_text_file("a.txt", "text", meta=meta),
        "terminal": a_client_terminal,
        "run": lambda turn, meta: turn.client.run("true", meta=meta),
    },
    RemoteTerminal: {
        "output": with_a_terminal(lambda terminal, meta: terminal.output(meta=meta)),
        "wait": with_a_terminal(lambda terminal, meta: terminal.wait(meta=meta)),
        "kill": with_a_terminal(lambda terminal, meta: terminal.kill(meta=meta)),
    },
    ElicitedUrl: {"complete": completed},
}

IN_VERSION_1 = {(TurnFiles, "read"), (TurnFiles, "write"), (Tool, "terminal")} | {
    (cls, name) for cls in (RemoteClient, RemoteTerminal) for name in SAID[cls]
}
"""What version 2 does not have: files and terminals that the client lends."""

WITHOUT = {
    "the author's own message, with its own `_meta`": {
        accord.Turn: {"send"},
        accord.Session: {"send"},
        RemoteClient: {"request", "request_raw", "notify", "notify_raw"},
        accord.RemoteAgent: {"request", "request_raw", "notify", "notify_raw"},
    },
    "a change of an object that has its `_meta` from another call": {
        accord.Session: {"set_title"},  # set_info_meta
        Tool: {"clear", "locations", "raw_input", "raw_output", "retitle", "start", "pause", "fail"},  # set_meta
        TurnPlan: {"send", "remove"},  # turn.plan
        PlanDocument: {"replace", "remove"},  # turn.plan_document
        SentMessage: {"clear"},  # replace
        Commands: {"remove"},
        Config: {"remove"},
    },
    "several messages, each with a call of its own": {
        accord.Turn: {"stream_answer"},
        RemoteTerminal: {"run_out"},
        ToolCommand: {"wait", "output", "kill"},
    },
    "nothing is sent": {
        accord.Turn: {"end_message", "prompts", "provider", "start"},
        accord.Session: {
            *("extension", "fold", "history", "messages_for", "on", "provider", "resolve", "save", "start"),
            *("tool_call", "work"),
        },
        Config: {"values"},
        accord.RemoteAgent: {"close", "closed", "extension", "kill", "login_method", "on", "stderr_tail"},
        accord.RemoteSession: {
            *("close_questions", "extension", "fold", "idle", "markdown", "on", "on_change", "tool_call", "updates"),
        },
        accord.Reply: {"changes", "iter_text", "wire", "with_subagents"},
        RemoteSubagent: {"fold", "markdown", "on_change", "tool_call", "updates"},
        SuggestionRequest: {"shows"},
    },
}
"""The public calls that take no `meta`, by reason."""

NOT_IN_STATE = {
    # a part of something that grows
    *((accord.Turn, name) for name in ("say", "think", "say_as_user")),
    (RunningCompaction, "summary"),
    # the update's own, and not that of an object
    *((accord.Turn, name) for name in ("plan", "plan_document")),
    *((accord.Session, "suggest"), (Config, "set"), (Modes, "set"), (Models, "set")),
    # a request, or its answer
    *((accord.Turn, name) for name in ("ask", "elicit", "elicit_url", "tokens")),
    *((Tool, name) for name in ("ask", "elicit", "elicit_url")),
    *((TurnFiles, "read"), (TurnFiles, "write"), (ElicitedUrl, "complete")),
    *((cls, name) for cls in (RemoteClient, RemoteTerminal) for name in SAID[cls]),
}
"""What is no part of the session's state."""

NOT_IN_STATE_OF_VERSION_1 = {(accord.Turn, "message"), (SentMessage, "replace"), (Tool, "command")}
"""Messages, which version 1 has only in parts, and a terminal that the client has created itself."""


def kept(state):
    """Return the objects of a session's state."""
    values = [getattr(state, name) for name in dir(state) if not name.startswith("_")]
    return [it for it in values if not callable(it)]


class Asks:
    """A client's answers to questions, with the `_meta` that came and went."""

    def __init__(self):
        self.seen = []

    async def decide(self, question):
        self.seen.append(question.meta)
        question.answer_meta["answered"] = True
        return True

    async def fill_in(self, question):
        await self.decide(question)
        return {"colour": "blue"}


@asynccontextmanager
async def reached(way, agent, version, trace, asks=None, **options):
    """A connection with this agent: in memory, behind a proxy, or served."""
    asks = asks or Asks()
    client = accord.Client(
        files=True,
        terminals=True,
        permissions=asks.decide,
        elicitation=Elicitation(asks.fill_in, asks.decide),
        prompt_suggestions=True,
        meta=SENT,
    )
    for message in messages_to("client"):
        client.before(message)(lambda it: asks.seen.append(getattr(it, "meta", None)))
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


def messages_to(side):
    """Return the messages to this side: those of version 1, which are converted, and what only version 2 has."""
    first = {row.name: row.message for row in methods(1) if row.to in (side, "both")}
    every = first | {row.name: row.message for row in methods(2) if row.to == side and row.name not in first}
    return [message for name, message in every.items() if name not in ("initialize", "session/update")]


def has(value, meta=None):
    """Whether some `_meta` in this JSON, or in these objects, is what was sent."""
    meta = meta or SENT
    if isinstance(value, msgspec.Struct):
        own = getattr(value, "meta", None)
        if isinstance(own, dict) and own.items() >= meta.items():
            return True
        return any(has(getattr(value, name), meta) for name in value.__struct_fields__)
    if isinstance(value, dict):
        own = value.get("_meta", value)
        return (isinstance(own, dict) and own.items() >= meta.items()) or any(has(it, meta) for it in value.values())
    if isinstance(value, list | tuple | set):
        return any(has(it, meta) for it in value)
    own = getattr(value, "meta", None)
    return isinstance(own, dict) and own.items() >= meta.items()


@pytest.mark.parametrize("way", ["memory", "proxy", "served"])
@pytest.mark.parametrize("version", [1, 2])
async def test_whatever_an_agent_says_carries_meta_and_is_read_by_the_client(version, way, tmp_path):
    seen, client_metas, asks, answers = [], [], Asks(), []
    agent = accord.Agent("says", versions=(version,), meta=SENT, unstable=True)
    calls = {(cls, name): call for cls, its_calls in SAID.items() for name, call in its_calls.items()}
    by_word = {f"{cls.__name__}.{name}": (cls, name) for cls, name in calls}

    @agent.on_session
    async def offer(session):
        await session.modes.offer(["one", "two"])
        await session.models.offer(["one", "two"])
        await session.config.offer("speed", "Speed", ["s", "l"])

    @agent.on_prompt
    async def work(turn):
        client_metas.append(turn.client.meta)
        answers.append(await calls[by_word[turn.text]](turn, {"_example.com/said": turn.text}))

    (tmp_path / "a.txt").write_text("text")
    async with reached(way, agent, version, seen.append, asks, unstable=True) as remote:
        assert remote.meta.items() >= SENT.items()
        lacking, silent = [], NOT_IN_STATE | (NOT_IN_STATE_OF_VERSION_1 if version == 1 else set())
        for word, call in by_word.items():
            if version == 2 and call in IN_VERSION_1:
                continue
            session = await remote.new_session(tmp_path)
            seen.clear()
            reply = session.prompt(word, subagents=True)
            updates = [update async for _, update in reply.with_subagents()]
            outcome, meta = await reply, {"_example.com/said": word}
            if not any(it.direction == "in" and it.frame and has(json.loads(it.frame), meta) for it in seen):
                lacking.append(f"{word}: not on the wire")
            if not has([*updates, outcome, *asks.seen], meta):
                lacking.append(f"{word}: not read")
            if call not in silent and not has(kept(session.state), meta):
                lacking.append(f"{word}: not in the state")
            await session.close()
    assert lacking == []
    assert all(meta == SENT for meta in client_metas)
    asked = [it for it in answers if isinstance(it, Decision | Elicited | ElicitedUrl)]
    assert len(asked) == 3
    assert all(it.meta == {"answered": True} for it in asked)


def asked_of(agent, heard):
    """Let clients ask this agent for whatever they can."""
    agent.provider("main", supports=["openai"], meta=SENT)

    @agent.login("key", "Key", meta=SENT)
    async def log_in():
        return True

    @agent.on_logout
    async def log_out():
        pass

    @agent.on_session
    async def offer(session):
        await session.modes.offer([("one", "One"), ("two", "Two")])
        await session.models.offer([("one", "One"), ("two", "Two")])
        await session.config.offer("size", "Size", [("s", "S"), ("l", "L")])

    @agent.on_prompt
    async def wait_if_asked(turn):
        heard.append(turn.meta)
        await turn.say("Hello")
        if turn.text == "wait":
            await asyncio.Event().wait()
        if turn.text == "tool":
            async with turn.tool("Wait", cancellable=True):
                await asyncio.Event().wait()
        if turn.text == "terminal":
            async with turn.tool("Wait") as tool, tool.command([sys.executable, "-c", "input()"]) as command:
                await command.wait()
        if turn.text == "subagent":
            async with turn.subagent("Wait", cancellable=True):
                await asyncio.Event().wait()

    return agent


ENDPOINT = accord.Endpoint("openai", "http://127.0.0.1:1/")


async def listed(remote, _):
    return [it async for it in remote.sessions(meta=SENT)]


async def again(remote, session, open_it):
    await session.close()
    return await open_it(session.id, "/", meta=SENT)


async def cancelled(session, *, by):
    reply = session.prompt("wait")
    await anext(aiter(reply))
    if by == "request_cancel":
        reply.request_cancel(meta=SENT)
    else:
        await (reply if by == "reply" else session).cancel(meta=SENT)
    await reply


async def cancelled_part(session, kind, cancel):
    reply = session.prompt(kind)
    async for _ in reply:
        found = {
            "tool": [it.id for it in session.state.tool_calls.values() if it.can_cancel],
            "terminal": [it.id for it in session.state.terminals.values() if it.can_cancel],
            "subagent": [it for it in session.subagents.values() if it.can_cancel],
        }[kind]
        if found:
            await cancel(found[0])
            break
    await reply


ASKED = {
    accord.RemoteAgent: {
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
    accord.RemoteSession: {
        "prompt": lambda _, session: session.prompt("go", meta=SENT),
        "cancel": lambda _, session: cancelled(session, by="session"),
        "cancel_tool_call": lambda _, session: cancelled_part(
            session, "tool", lambda its_id: session.cancel_tool_call(its_id, meta=SENT)
        ),
        "cancel_terminal": lambda _, session: cancelled_part(
            session, "terminal", lambda its_id: session.cancel_terminal(its_id, meta=SENT)
        ),
        "fork": lambda _, session: session.fork(meta=SENT),
        "set_mode": lambda _, session: session.set_mode("two", meta=SENT),
        "set_model": lambda _, session: session.set_model("two", meta=SENT),
        "set_config": lambda _, session: session.set_config("size", "l", meta=SENT),
        "set_title": lambda _, session: session.set_title("T", meta=SENT),
        "close": lambda _, session: session.close(meta=SENT),
    },
    accord.Reply: {
        "cancel": lambda _, session: cancelled(session, by="reply"),
        "request_cancel": lambda _, session: cancelled(session, by="request_cancel"),
    },
    RemoteSubagent: {
        "cancel": lambda _, session: cancelled_part(session, "subagent", lambda subagent: subagent.cancel(meta=SENT))
    },
}
"""What a client asks, each with `_meta`, by the class that has it."""

IN_VERSION_2 = ("cancel_tool_call", "cancel_terminal")


@pytest.mark.parametrize("way", ["memory", "proxy", "served"])
@pytest.mark.parametrize("version", [1, 2])
async def test_whatever_a_client_asks_carries_meta_and_is_read_by_the_agent(version, way, tmp_path):
    seen, heard, lacking = [], [], []
    agent = asked_of(accord.Agent("asked", versions=(version,), unstable=True, store=MemoryStore()), heard)
    for message in messages_to("agent"):
        agent.before(message)(lambda it: heard.append(getattr(it, "meta", None)))
    async with reached(way, agent, version, seen.append, unstable=True) as remote:
        assert [it.meta for it in remote.auth_methods] == [SENT]
        assert [it.meta for it in await remote.providers()] == [SENT]
        for cls, calls in ASKED.items():
            for name, call in calls.items():
                if version == 1 and name in IN_VERSION_2:
                    continue
                await remote.login("key")
                session = await remote.new_session("/")
                seen.clear()
                heard.clear()
                await call(remote, session)
                if not any(it.direction == "out" and it.frame and has(json.loads(it.frame)) for it in seen):
                    lacking.append(f"{cls.__name__}.{name}: not on the wire")
                if not any(it and it.items() >= SENT.items() for it in heard):
                    lacking.append(f"{cls.__name__}.{name}: not read")
    assert lacking == []


# Suggestions of edits, which only version 1 has.


SUGGESTED = {
    Suggestions: {"open": lambda suggestions, *_: suggestions.open("b.py", "", meta=SENT)},
    OpenDocument: {
        "change": lambda _, document, __: document.change("print", meta=SENT),
        "edit": lambda _, document, __: document.edit(0, 4, "x", meta=SENT),
        "save": lambda _, document, __: document.save(meta=SENT),
        "focus": lambda _, document, __: document.focus(0, meta=SENT),
        "suggest": lambda _, document, __: document.suggest(0, meta=SENT),
        "close": lambda _, document, __: document.close(meta=SENT),
    },
    Suggestion: {
        "accept": lambda *given: given[2].accept(meta=SENT),
        "reject": lambda *given: given[2].reject(meta=SENT),
    },
}
SUGGESTION_CALLS = {
    "edit": lambda request: request.edit("print", meta=SENT),
    "replace": lambda request: request.replace(0, 1, "q", meta=SENT),
    "jump": lambda request: request.jump(line=1, meta=SENT),
    "rename": lambda request: request.rename(0, "x", meta=SENT),
    "search": lambda request: request.search("a", "b", meta=SENT),
}


@pytest.mark.parametrize("way", ["memory", "proxy", "served"])
async def test_suggestions_carry_meta_in_both_directions(way, tmp_path):
    heard, lacking = [], []
    agent = accord.Agent("suggests", versions=(1,), unstable=True)
    agent.on_prompt(print)
    agent.on_document_save(print)
    agent.on_document_focus(print)
    for message in messages_to("agent"):
        agent.before(message)(lambda it: heard.append(getattr(it, "meta", None)))

    @agent.on_suggest
    def suggest(request):
        return [call(request) for call in SUGGESTION_CALLS.values()]

    async with reached(way, agent, 1, None, unstable=True) as remote:
        for calls in SUGGESTED.values():
            for name, call in calls.items():
                async with remote.suggestions(tmp_path, meta=SENT) as suggestions:
                    assert heard[-1] == SENT
                    document = await suggestions.open("a.py", "prin")
                    found = await document.suggest(at=4)
                    assert [it.value.meta for it in found] == [SENT] * len(SUGGESTION_CALLS)
                    heard.clear()
                    await call(suggestions, document, found[0])
                if SENT not in heard:
                    lacking.append(name)
    assert lacking == []


async def test_the_ways_to_log_in_have_meta(serve):
    agent = accord.Agent("logins", unstable=True)
    agent.on_prompt(print)
    agent.login("key", "Key", meta=SENT)(print)
    agent.terminal_login("terminal", "Terminal", meta=SENT)(lambda: False)
    agent.environment_login("variable", "Variable", ["_ACCORD_UNSET"], meta=SENT)
    async with serve(agent, declare=v1.ClientCapabilities(auth=v1.AuthCapabilities(terminal=True))) as editor:
        assert [it.meta for it in editor.agent.auth_methods] == [SENT] * 3
    older = v1.ClientCapabilities(meta={"terminal-auth": True})
    async with serve(agent, declare=older) as editor:
        assert [it.meta.items() >= SENT.items() for it in editor.agent.auth_methods] == [True] * 3


def takes_meta(cls):
    """Return the public methods with `meta`, and those without."""
    inherited = set(dir(accord.Turn)) if cls is Subagent else set()
    methods = {
        name: it
        for name, it in inspect.getmembers(cls, inspect.isroutine)
        if not name.startswith("_") and (name not in inherited or name in vars(cls))
    }
    given = {name for name, it in methods.items() if "meta" in inspect.signature(it).parameters}
    return given, methods.keys() - given


CLASSES = {**SAID, **ASKED, **SUGGESTED, SuggestionRequest: SUGGESTION_CALLS}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda it: it.__name__)
def test_each_public_call_takes_meta_and_is_in_the_table_or_has_a_reason(cls):
    given, without = takes_meta(cls)
    assert CLASSES[cls].keys() == given - {"suggestions"}  # that one is in the test of suggestions
    assert without == set().union(*(classes.get(cls, set()) for classes in WITHOUT.values()))
