"""Several clients of one agent: everyone sees everything, and turns continue without a client."""

import asyncio
import json

import pytest

import accord
from accord import v1
from accord.http import SharedHost, serving
from accord.http.server.shared_conversation import SharedConversation
from tests.hosts.hosting import HostProcesses, editor_on
from tests.http.talking import WAYS, an_agent
from tests.waiting import DEADLINE, eventually

WATCHING = {"accord.dev/watch": True}


async def load(editor, session, meta=None):
    request = v1.LoadSessionRequest(session, "/project", [], meta=meta)
    return await editor.request(request, timeout=DEADLINE)


async def heard(editor, session, text):
    """Wait until this client has all of this text."""
    async with asyncio.timeout(DEADLINE):
        while editor.text(session) != text:
            await editor.hear_more()


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture
async def url():
    async with serving(SharedHost(an_agent())) as server:
        yield server.url


async def test_a_second_client_sees_the_past_and_the_present_of_a_session(url, way):
    async with editor_on(url, way) as one, editor_on(url, way) as two:
        session = await one.open_session()
        await one.prompt(session, "first words")
        await load(two, session)
        assert two.text(session) == "first words "
        await one.prompt(session, "and more")
        await heard(two, session, "first words and more ")
        await two.prompt(session, "mine")
        await heard(one, session, "first words and more mine ")


async def test_a_turn_goes_on_without_a_client_and_another_one_ends_it(url, way):
    async with editor_on(url, way) as one:
        session = await one.open_session()
        turn = asyncio.create_task(one.prompt(session, "wait"))
        async with asyncio.timeout(DEADLINE):
            await one.first_words.wait()
    with pytest.raises(accord.ConnectionClosed):
        await turn
    async with editor_on(url, way) as two:
        await load(two, session)
        assert two.text(session) == "waiting"
        await two.notify(v1.CancelNotification(session))
        assert (await two.prompt(session, "after")).stop_reason == "end_turn"
        assert two.text(session) == "waitingafter "


async def test_a_client_that_watches_sees_everything_and_may_do_nothing(url, way):
    async with editor_on(url, way) as one, editor_on(url, way) as two:
        session = await one.open_session()
        await load(two, session, WATCHING)
        turn = asyncio.create_task(one.prompt(session, "ask"))
        with pytest.raises(accord.PeerError, match="only watches it"):
            await two.prompt(session, "no")
        assert (await turn).stop_reason == "end_turn"
        await heard(two, session, "allowed")
        await load(two, session)
        assert (await two.prompt(session, "yes")).stop_reason == "end_turn"


@pytest.mark.parametrize("version", [1, 2])
async def test_an_observer_follows_a_session_and_may_not_change_it(url, version):
    async with accord.connect(url, versions=(version,)) as one, accord.connect(url, versions=(version,)) as two:
        session = await one.new_session("/project")
        await session.prompt("hello there")
        watched = await two.watch(session.id, meta={"example.com/mine": 1})
        assert [message.text for message in watched.state.messages] == ["hello there", "hello there "]
        with pytest.raises(accord.PeerError, match="only watches it"):
            await watched.prompt("no")
        await session.prompt("again")
        await eventually(lambda: watched.state.messages[-1].text == "again ")


async def test_an_agent_that_does_not_know_of_watching_cannot_be_watched():
    agent = an_agent()

    @agent.on(v1.LoadSessionRequest)
    async def load(request):
        raise accord.RequestError.not_found()

    async with serving(agent) as server, accord.connect(server.url) as other:
        with pytest.raises(accord.CapabilityMissing, match=r"remote.watch\(\) needs"):
            await other.watch("any")


@pytest.mark.parametrize("observer", [1, 2])
async def test_an_observer_that_comes_first_leaves_the_session_where_it_runs(tmp_path, observer):
    agent = an_agent(store=tmp_path / "sessions.sqlite3")
    async with (
        accord.connect(an_agent(store=tmp_path / "sessions.sqlite3")) as outside,
        serving(SharedHost(agent)) as server,
        accord.connect(server.url, versions=(observer,)) as two,
        accord.connect(server.url, versions=(observer,)) as three,
    ):
        session = await outside.new_session("/project")
        turn = session.prompt("wait")
        watched = await two.watch(session.id)
        await eventually(lambda: watched.state.messages[-1].text == "waiting")
        assert not turn.done
        second = await three.watch(session.id)  # from the log of the first
        assert [it.text for it in second.state.messages] == ["wait", "waiting"]
        await turn.cancel()
        await session.prompt("outside")
        for one in (watched, second):
            await eventually(lambda one=one: [it.text for it in one.state.messages][2:] == ["outside", "outside "])


@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_that_was_only_watched_is_opened_for_its_first_controller(tmp_path, version):
    agent = an_agent(store=tmp_path / "sessions.sqlite3")
    async with (
        accord.connect(an_agent(store=tmp_path / "sessions.sqlite3")) as outside,
        serving(SharedHost(agent)) as server,
        accord.connect(server.url, versions=(version,)) as observer,
        accord.connect(server.url, versions=(version,)) as controller,
    ):
        session = await outside.new_session("/project")
        await session.prompt("outside")
        watched = await observer.watch(session.id)
        await session.prompt("late")  # may be stored and not told when the agent opens the session
        loaded = await controller.load(session.id, "/project")
        assert [it.text for it in loaded.state.messages] == ["outside", "outside ", "late", "late "]
        await loaded.prompt("inside")
        expected = ["outside", "outside ", "late", "late ", "inside", "inside "]
        await eventually(lambda: [it.text for it in watched.state.messages] == expected)
        assert [it.text for it in loaded.state.messages] == expected
        assert observer.open_sessions  # its watch goes on


async def test_clients_of_both_versions_watch_each_other_s_sessions(url):
    async with accord.connect(url, versions=(1,)) as one, accord.connect(url, versions=(2,)) as two:
        session = await one.new_session("/project")
        turn = session.prompt("wait")
        watched = await two.watch(session.id)
        await eventually(lambda: watched.state.messages[-1].text == "waiting")
        assert not turn.done  # the agent of version 2 has not taken the session
        await turn.cancel()


async def test_observers_are_told_that_their_session_was_deleted_elsewhere(tmp_path):
    agent = an_agent(store=tmp_path / "sessions.sqlite3")
    async with (
        accord.connect(an_agent(store=tmp_path / "sessions.sqlite3")) as outside,
        serving(SharedHost(agent)) as server,
        accord.connect(server.url) as one,
        accord.connect(server.url) as two,
    ):
        session = await outside.new_session("/project")
        watched = [await it.watch(session.id) for it in (one, two)]
        await outside.delete(session.id)
        await eventually(lambda: not (one.open_sessions or two.open_sessions))
        assert [it.state.notices[0].title for it in watched] == ["The session was deleted."] * 2


async def test_a_client_that_watches_twice_is_told_all_again(url, way):
    async with editor_on(url, way) as one, editor_on(url, way) as two:
        session = await one.open_session()
        await one.prompt(session, "once")
        await load(two, session, WATCHING)
        await load(two, session, WATCHING)
        assert two.text(session) == "once once "


async def test_clients_of_version_2_share_a_session(url):
    async with accord.connect(url, versions=(2,)) as one, accord.connect(url, versions=(2,)) as two:
        session = await one.new_session("/project")
        assert (await session.prompt("hello there")).text == "hello there "
        other = await two.load(session.id, "/project")
        assert [message.text for message in other.state.messages] == ["hello there", "hello there "]
        assert (await other.prompt("again")).text == "again "


async def test_an_agent_of_version_1_is_shared_by_clients_that_speak_more(way):
    agent = accord.Agent("old", versions=(1,))

    @agent.on_prompt
    async def answer(turn):
        await turn.say("old ")

    async with serving(SharedHost(agent)) as server, accord.connect(server.url) as one:
        session = await one.new_session("/project")
        await session.prompt("hello")
        async with editor_on(server.url, way) as two:
            await load(two, session.id)
            assert two.text(session.id) == "old "


async def test_the_agents_of_owners_are_apart():
    access = accord.http.Access({"a-token": "ada", "b-token": "bob"})
    async with serving(SharedHost(an_agent()), access=access) as server:
        ada, bob = ({"authorization": f"Bearer {token}"} for token in ("a-token", "b-token"))
        async with editor_on(server.url, headers=ada) as one, editor_on(server.url, headers=bob) as two:
            session = await one.open_session()
            with pytest.raises(accord.PeerError):
                await load(two, session)


async def test_an_agent_that_ends_ends_the_connections_of_its_clients():
    command = ["python3", "-c", "import sys; sys.stdin.readline()"]
    async with serving(SharedHost(command)) as server:
        with pytest.raises(accord.AccordError, match="process ended"):
            async with editor_on(server.url):
                pass


async def test_a_server_that_shuts_down_waits_for_a_turn_without_a_client():
    released = asyncio.Event()
    agent = accord.Agent("patient")
    ended = []

    @agent.on_prompt
    async def answer(turn):
        await turn.say("begun")
        await released.wait()
        ended.append(True)

    async with serving(SharedHost(agent)) as server:
        async with editor_on(server.url) as editor:
            turn = asyncio.create_task(editor.prompt(await editor.open_session(), "go"))
            async with asyncio.timeout(DEADLINE):
                await editor.first_words.wait()
        with pytest.raises(accord.ConnectionClosed):
            await turn
        closing = asyncio.create_task(server.app.close(grace=DEADLINE))
        await asyncio.sleep(0)
        released.set()
        await closing
        assert ended


async def test_a_second_client_joins_a_turn_that_runs_on_another_host(directory):
    async with HostProcesses({**directory, "shared": True}, 3) as hosts, editor_on(hosts.all[0].url) as one:
        session = await one.open_session()
        turn = asyncio.create_task(one.prompt(session, "wait"))
        async with asyncio.timeout(DEADLINE):
            await one.first_words.wait()
        async with editor_on(hosts.all[1].url) as two, editor_on(hosts.all[2].url, "websocket") as three:
            for other in (two, three):
                await load(other, session)
                assert other.text(session) == "waiting"
            assert not turn.done()
            await three.notify(v1.CancelNotification(session))
            assert (await turn).stop_reason == "cancelled"
            await three.prompt(session, "more")
            for other in (one, two):
                await heard(other, session, "waitingmore")


# The decisions, without an agent


class Talk:
    """A conversation, and who got what."""

    def __init__(self, version=1):
        self.shared = SharedConversation()
        self.version = version

    def say(self, client, **message):
        self.shared.received(client, json.dumps({"jsonrpc": "2.0", **message}).encode())
        return self.taken()

    def tell(self, **message):
        self.shared.from_agent(json.dumps({"jsonrpc": "2.0", **message}).encode())
        return self.taken()

    def taken(self):
        out = [(receiver, json.loads(frame)) for receiver, frame in self.shared.out]
        self.shared.out.clear()
        return out

    def begin(self, *clients):
        """Clients with the open session `s`."""
        for client in clients:
            self.shared.joined(client)
            said = self.say(client, id=0, method="initialize", params={"protocolVersion": self.version})
            if client == clients[0]:
                self.tell(id=said[0][1]["id"], result={"protocolVersion": self.version})
                said = self.say(client, id=1, method="session/new", params={"cwd": "/"})
                self.tell(id=said[0][1]["id"], result={"sessionId": "s", "modes": {"currentModeId": "a"}})
            else:
                self.open(client)

    def open(self, client, **meta):
        params = {"sessionId": "s", "cwd": "/", "_meta": meta, "replayFrom": {"type": "start"}}
        method = "session/load" if self.version == 1 else "session/resume"
        return self.say(client, id="open", method=method, params=params)

    def prompt(self, client, number):
        prompt = [{"type": "text", "text": "hello"}]
        return self.say(client, id=number, method="session/prompt", params={"sessionId": "s", "prompt": prompt})

    def update(self, **update):
        return self.tell(method="session/update", params={"sessionId": "s", "update": update})


def test_what_is_no_message_is_answered_to_the_client_that_sent_it():
    talk = Talk()
    talk.begin(1, 2)
    [(receiver, answer)] = talk.say(2, id=5, method=7)
    assert (receiver, answer["id"], answer["error"]["code"]) == (2, 5, -32600)


def test_a_client_that_comes_later_is_told_the_present_mode():
    talk = Talk()
    talk.begin(1)
    talk.update(sessionUpdate="current_mode_update", currentModeId="b")
    talk.shared.joined(2)
    talk.say(2, id=0, method="initialize", params={"protocolVersion": 1})
    opened = next(it for receiver, it in talk.open(2) if receiver == 2 and it.get("id") == "open")
    assert opened["result"]["modes"]["currentModeId"] == "b"


def test_the_first_answer_wins_and_the_others_are_told():
    talk = Talk()
    talk.begin(1, 2, 3)
    talk.open(3, **WATCHING)
    asked = talk.tell(id=7, method="session/request_permission", params={"sessionId": "s"})
    assert sorted(receiver for receiver, _ in asked) == [1, 2]
    number = asked[0][1]["id"]
    assert talk.say(3, id=number, result={"mine": True}) == []
    answered = talk.say(2, id=number, result={"outcome": "yes"})
    assert answered[0] == (0, {"jsonrpc": "2.0", "id": 7, "result": {"outcome": "yes"}})
    assert answered[1] == (1, {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}})
    assert talk.say(1, id=number, result={"outcome": "no"}) == []


def test_an_error_answers_a_question_only_if_no_other_client_is_asked():
    talk = Talk()
    talk.begin(1, 2)
    number = talk.tell(id=7, method="elicitation/create", params={"sessionId": "s"})[0][1]["id"]
    error = {"code": -32601, "message": "unknown"}
    assert talk.say(1, id=number, error=error) == []
    assert talk.say(2, id=number, error=error) == [(0, {"jsonrpc": "2.0", "id": 7, "error": error})]


def test_a_question_without_a_client_waits_for_the_next_one():
    talk = Talk()
    talk.begin(1)
    talk.shared.left(1)
    assert talk.tell(id=7, method="session/request_permission", params={"sessionId": "s"}) == []
    talk.shared.joined(2)
    talk.say(2, id=0, method="initialize", params={"protocolVersion": 1})
    assert [message.get("method") for _, message in talk.open(2)] == [None, "session/request_permission"]


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create"])
def test_the_agent_does_not_get_the_machine_of_one_client(method):
    talk = Talk()
    talk.begin(1)
    ((receiver, answer),) = talk.tell(id=7, method=method, params={"sessionId": "s"})
    assert (receiver, answer["error"]["code"]) == (0, -32601)


def test_the_agent_is_told_only_what_all_clients_can_do():
    talk = Talk()
    talk.shared.joined(1)
    offered = {"fs": {"readTextFile": True}, "terminal": True, "elicitation": {"form": {}}}
    params = {"protocolVersion": 1, "clientCapabilities": offered}
    ((_, sent),) = talk.say(1, id=0, method="initialize", params=params)
    shown = {"cursors": {}, "promptSuggestions": {}, "notices": {}}
    assert sent["params"]["clientCapabilities"] == {"elicitation": {"form": {}}, "session": shown}


def test_an_agent_of_version_2_is_asked_for_cursors_and_suggestions_as_that_version_has_it():
    talk = Talk(version=2)
    talk.shared.joined(1)
    ((_, sent),) = talk.say(1, id=0, method="initialize", params={"protocolVersion": 2, "capabilities": {}})
    asked = {"session": {"promptSuggestions": {}}, "_meta": {"accord.dev/cursors": {}}}
    assert sent["params"]["capabilities"] == asked


NOTICE = {"sessionUpdate": "notice", "severity": "info", "title": "Look"}
SUGGESTIONS = {"sessionUpdate": "prompt_suggestions_update", "suggestions": []}
CURSOR = {"sessionUpdate": "cursor_update", "cursorId": "c", "anchor": {"type": "message", "id": "m"}}


@pytest.mark.parametrize(
    ("version", "declared", "update"),
    [
        (1, {"session": {"notices": {}}}, NOTICE),
        (1, {"session": {"promptSuggestions": {}}}, SUGGESTIONS),
        (1, {"session": {"cursors": {}}}, CURSOR),
        (2, {"session": {"promptSuggestions": {}}}, SUGGESTIONS),
        (2, {"_meta": {"accord.dev/cursors": {}}}, CURSOR),
    ],
)
def test_each_client_gets_only_updates_that_it_declared(version, declared, update):
    talk = Talk(version=version)
    talk.begin(1)
    name = "clientCapabilities" if version == 1 else "capabilities"
    for client in (2, 3):
        offered = {name: declared} if client == 2 else {}
        talk.shared.joined(client)
        talk.say(client, id=0, method="initialize", params={"protocolVersion": version, **offered})
    talk.open(2)
    assert [receiver for receiver, _ in talk.update(**update)] == [2]
    kinds = [message["params"]["update"]["sessionUpdate"] for _, message in talk.open(3) if "params" in message]
    assert update["sessionUpdate"] not in kinds


def test_each_client_of_version_2_gets_notices():
    talk = Talk(version=2)
    talk.begin(1, 2)
    assert [receiver for receiver, _ in talk.update(**NOTICE)] == [1, 2]


def test_a_prompt_of_version_1_waits_for_the_turn_before_it_and_is_shown_to_the_others():
    talk = Talk()
    talk.begin(1, 2)
    sent = talk.prompt(1, 10)
    assert [receiver for receiver, _ in sent] == [0, 2]
    assert sent[1][1]["params"]["update"]["content"]["text"] == "hello"
    assert talk.prompt(2, 20) == []
    over = talk.tell(id=sent[0][1]["id"], result={"stopReason": "end_turn"})
    assert [(receiver, message.get("method")) for receiver, message in over] == [
        (1, None),
        (0, "session/prompt"),
        (1, "session/update"),
    ]
    assert talk.shared.is_busy


def test_a_cancellation_ends_the_prompts_that_wait():
    talk = Talk()
    talk.begin(1, 2)
    talk.prompt(1, 10)
    talk.prompt(2, 20)
    told = talk.say(1, method="session/cancel", params={"sessionId": "s"})
    assert told[0] == (2, {"jsonrpc": "2.0", "id": 20, "result": {"stopReason": "cancelled"}})
    assert [receiver for receiver, _ in told] == [2, 0]


def test_a_turn_of_version_2_ends_with_its_state():
    talk = Talk(version=2)
    talk.begin(1, 2)
    number = talk.prompt(1, 10)[0][1]["id"]
    talk.tell(id=number, result={})
    assert talk.shared.is_busy
    told = talk.update(sessionUpdate="state_update", state="idle", stopReason="end_turn")
    assert [receiver for receiver, _ in told] == [1, 2]
    assert not talk.shared.is_busy


def test_who_joins_in_version_2_is_told_the_past_whole_and_then_the_present_state():
    talk = Talk(version=2)
    talk.begin(1)
    talk.shared.joined(2)
    talk.say(2, id=0, method="initialize", params={"protocolVersion": 2})
    assert told_to(talk, 2) == [
        {"sessionUpdate": "replay_complete"},
        {"sessionUpdate": "state_update", "state": "idle"},
    ]
    message = {"type": "text", "text": "Hi"}
    talk.update(sessionUpdate="user_message", messageId="u", content=[message])
    talk.update(sessionUpdate="state_update", state="running")
    talk.update(sessionUpdate="replay_complete")
    for text in ("He", "llo"):
        talk.update(sessionUpdate="agent_message_chunk", messageId="m", content={"type": "text", "text": text})
    assert told_to(talk, 2) == [
        {"sessionUpdate": "user_message", "messageId": "u", "content": [message], "_meta": None},
        {
            "sessionUpdate": "agent_message",
            "messageId": "m",
            "content": [{"type": "text", "text": "Hello"}],
            "_meta": None,
        },
        {"sessionUpdate": "replay_complete"},
        {"sessionUpdate": "state_update", "state": "running"},
    ]
    without = talk.say(2, id=9, method="session/resume", params={"sessionId": "s", "cwd": "/"})
    assert [message.get("method") for _, message in without] == ["session/update", None]


def told_to(talk, client):
    """The updates that a client is told which opens the session with its past."""
    *updates, answer = [message for _, message in talk.open(client)]
    assert answer["id"] == "open"
    return [update["params"]["update"] for update in updates]


@pytest.mark.parametrize("start", [{"type": "end"}, {}, 7])
def test_an_unknown_start_of_a_replay_is_refused_to_who_joins(start):
    talk = Talk(version=2)
    talk.begin(1, 2)
    params = {"sessionId": "s", "cwd": "/", "replayFrom": start}
    [(receiver, refused)] = talk.say(2, id=4, method="session/resume", params=params)
    assert (receiver, refused["error"]["code"]) == (2, -32602)
    assert refused["error"]["data"] == {"path": "$.replayFrom"}


def test_a_retry_of_a_prompt_that_is_over_leaves_a_session_of_version_2_idle():
    talk = Talk(version=2)
    talk.begin(1)
    for number in (10, 11):
        asked = talk.prompt(1, number)[0][1]["id"]
        talk.tell(id=asked, result={"messageId": "1"})
        if number == 10:
            assert talk.shared.is_busy
            talk.update(sessionUpdate="state_update", state="running")
            assert talk.shared.is_busy
            talk.update(sessionUpdate="state_update", state="idle")
    assert not talk.shared.is_busy


def test_a_change_by_one_client_is_told_to_the_others_and_to_those_who_join():
    talk = Talk()
    talk.begin(1, 2)
    params = {"sessionId": "s", "modeId": "b"}
    number = talk.say(1, id=5, method="session/set_mode", params=params)[0][1]["id"]
    told = talk.tell(id=number, result={})
    assert [receiver for receiver, _ in told] == [1, 2]
    assert told[1][1]["params"]["update"] == {"sessionUpdate": "current_mode_update", "currentModeId": "b"}
    assert talk.open(2)[-1][1]["result"]["modes"] == {"currentModeId": "b"}


def test_a_client_that_closes_a_session_leaves_it_to_the_others():
    talk = Talk()
    talk.begin(1, 2)
    close = {"method": "session/close", "params": {"sessionId": "s"}}
    assert talk.say(1, id=5, **close) == [(1, {"jsonrpc": "2.0", "id": 5, "result": {}})]
    assert [receiver for receiver, _ in talk.update(sessionUpdate="plan")] == [2]
    assert [receiver for receiver, _ in talk.say(2, id=5, **close)] == [0]


def test_requests_to_open_a_session_wait_until_the_agent_has_opened_it():
    talk = Talk()
    talk.begin(1)
    talk.say(1, id=5, method="session/close", params={"sessionId": "s"})
    talk.tell(id=max(talk.shared._asked), result={})
    talk.shared.joined(2)
    talk.say(2, id=0, method="initialize", params={"protocolVersion": 1})
    ((receiver, sent),) = talk.open(1)
    assert receiver == 0
    assert talk.open(2) == []
    assert [receiver for receiver, _ in talk.update(sessionUpdate="plan")] == [1]
    opened = talk.tell(id=sent["id"], result={})
    assert [receiver for receiver, _ in opened] == [1, 2, 2]


def test_a_session_whose_log_is_too_long_is_replayed_by_the_agent_after_its_turn(monkeypatch):
    monkeypatch.setattr("accord.http.server.shared_session.MOST_LOG", 10)
    talk = Talk()
    talk.begin(1)
    number = talk.prompt(1, 10)[0][1]["id"]
    talk.update(sessionUpdate="plan")
    talk.shared.joined(2)
    talk.say(2, id=0, method="initialize", params={"protocolVersion": 1})
    assert talk.open(2) == []
    over = talk.tell(id=number, result={"stopReason": "end_turn"})
    assert [(receiver, message.get("method")) for receiver, message in over] == [(1, None), (0, "session/load")]


@pytest.mark.parametrize("versions", [(1, 2), (2, 1)])
async def test_a_session_goes_back_and_forth_between_clients_of_both_versions(versions):
    """Each version has an agent of its own here, and a session is open at one of them."""
    async with serving(SharedHost(an_agent())) as server:
        one, two = [accord.connect(server.url, versions=(version,)) for version in versions]
        async with one as one, two as two:
            session = await one.new_session("/project")
            said = []
            here, there = one, two
            for word in ("a", "b", "c", "d"):
                said += [word, (await session.prompt(word)).text]
                other = await there.load(session.id, "/project")
                assert [message.text for message in other.state.messages] == said
                with pytest.raises(accord.PeerError) as refused:
                    await session.prompt("lost")
                assert refused.value.data["reason"] == "taken"
                session, here, there = other, there, here


async def test_a_client_of_the_other_version_joins_a_turn_that_runs():
    agent, goes_on = accord.Agent("slow"), asyncio.Event()

    @agent.on_prompt
    async def work(turn):
        await turn.say("one ")
        await goes_on.wait()
        await turn.say("two")

    async with (
        serving(SharedHost(agent)) as server,
        accord.connect(server.url, versions=(1,)) as one,
        accord.connect(server.url, versions=(2,)) as two,
    ):
        session = await one.new_session("/project")
        reply = session.prompt("go")
        await eventually(lambda: [it.text for it in session.state.messages] == ["go", "one "])
        joined = await two.load(session.id, "/project")
        assert (joined.state.activity, [it.text for it in joined.state.messages]) == ("running", ["go", "one "])
        goes_on.set()
        assert (await reply).stop_reason == "end_turn"
        assert (await joined.prompt("again")).text == "one two"
