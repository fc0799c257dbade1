"""What `accord.testing` promises to those who test with it."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys

import pytest

import accord.testing
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import ConnectionClosed
from accord.testing import Faults, FaultyTransport, ScriptedPeer, ScriptFailed, connected, script_command
from accord.transports.memory_transport import pair
from accord.transports.process_transport import ProcessTransport
from tests.interaction.staging import chunk, forever, says, text_of, until
from tests.interaction.versions import spoken


def test_the_names_are_these():
    assert accord.testing.__all__ == [
        "Connected",
        "Faults",
        "FaultyTransport",
        "RecordedAgent",
        "RecordedClient",
        "ScriptFailed",
        "ScriptedPeer",
        "Tally",
        "connected",
        "recorded_agent_command",
        "script_command",
    ]


def test_no_test_framework_is_imported():
    script = "import sys, accord.testing; print({'pytest', 'unittest', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# The scripted peer


@pytest.fixture
async def two_scripts():
    here, there = pair()
    async with ScriptedPeer(here, deadline=0.05) as one, ScriptedPeer(there, deadline=0.05) as other:
        yield one, other


async def fails(awaitable):
    with pytest.raises(ScriptFailed) as caught:
        await awaitable
    return str(caught.value)


async def test_it_sends_and_reads_in_order(two_scripts):
    one, other = two_scripts
    asked = one.call("_a", {"x": 1})
    one.tell("_b")
    call = await other.expect("_a")
    assert call == {"jsonrpc": "2.0", "id": asked, "method": "_a", "params": {"x": 1}}
    assert await other.expect("_b") == {"jsonrpc": "2.0", "method": "_b"}
    other.answer(call, {"y": 2})
    assert await one.expect_result(asked) == {"y": 2}
    other.answer(call)
    assert await one.expect_answer(asked) == {"jsonrpc": "2.0", "id": asked, "result": {}}
    other.error(call, -32000, "no", {"z": 3})
    assert await one.expect_error(asked, -32000) == {"code": -32000, "message": "no", "data": {"z": 3}}


async def test_it_asks_and_waits_in_one(two_scripts):
    one, other = two_scripts
    asking = asyncio.create_task(one.request("_a"))
    other.answer(await other.expect("_a"), {"fine": True})
    assert await asking == {"fine": True}


async def test_it_sends_any_bytes(two_scripts):
    one, other = two_scripts
    one.send_raw(b"\xff not json", b"[]")
    assert await other.receive_raw() == b"\xff not json"
    assert await other.receive_raw() == b"[]"


async def test_its_failures_tell_what_was_expected_what_came_and_the_conversation(two_scripts):
    one, other = two_scripts
    one.tell("_first")
    one.tell("_second", {"text": "x" * 1000})
    one.tell("_third")
    other.tell("_hello")
    await other.expect("_first")
    lines = (await fails(other.expect("_other"))).splitlines()
    cut = lines.pop(4)
    assert lines == [
        "expected _other, got _second (a notification)",
        "the conversation so far (-> is what the script sent)",
        '  -> {"jsonrpc":"2.0","method":"_hello"}',
        '  <- {"jsonrpc":"2.0","method":"_first"}',
        '  <- {"jsonrpc":"2.0","method":"_third"} (not read yet)',
    ]
    assert cut.startswith('  <- {"jsonrpc":"2.0","method":"_second","params":{"text":"xxx')
    assert re.search(r"xxx… \(1,0\d\d bytes\)$", cut)
    assert len(cut) < 350


async def test_a_long_conversation_is_told_from_its_end(two_scripts):
    one, other = two_scripts
    for number in range(100):
        one.tell(f"_{number}")
        await other.expect(f"_{number}")
    problem = await fails(other.receive())
    assert "  ... 70 before" in problem
    assert '"_99"' in problem
    assert '"_69"' not in problem


WRONG = {"id": 5, "error": {"code": 1}}


@pytest.mark.parametrize(
    ("sent", "expect", "problem"),
    [
        (None, lambda it: it.expect("_a"), "expected _a, but nothing came within 0.05 seconds"),
        ({"id": 5, "method": "_b"}, lambda it: it.expect("_a"), "expected _a, got _b (a request)"),
        ({"id": 5, "result": {}}, lambda it: it.expect("_a"), "expected _a, got the answer to 5"),
        ({"id": "5", "result": {}}, lambda it: it.expect_answer(5), "the answer to 5, got the answer to '5'"),
        ({"id": True, "result": {}}, lambda it: it.expect_answer(1), "expected the answer to 1, got"),
        (WRONG, lambda it: it.expect_result(5), "expected a result for 5, got the error"),
        ({"id": 5, "result": {}}, lambda it: it.expect_error(5), "expected an error for 5, got the answer to 5"),
        ({"error": {"code": 1}}, lambda it: it.expect_error(None), "expected an error for None, got"),
        (WRONG, lambda it: it.expect_error(5, 2), "expected an error 2 for 5"),
        ([1], lambda it: it.receive(), "expected a message, got JSON that is not an object: [1]"),
        (b"hello", lambda it: it.receive(), "expected a message, got invalid JSON: hello"),
        ({"method": "_b"}, lambda it: it.expect_end(), 'expected the end, got {"method":"_b"}'),
        ({"method": "_b"}, lambda it: it.expect_silence(), "expected silence, got _b"),
        (None, lambda it: it.expect_end(), "expected the end, but nothing came"),
    ],
)
async def test_each_failure_is_clear(two_scripts, sent, expect, problem):
    one, other = two_scripts
    if isinstance(sent, bytes):
        one.send_raw(sent)
    elif sent is not None:
        one.send(sent)
    assert problem in await fails(expect(other))


async def test_the_end_of_the_link_is_told_and_what_came_before_it_is_read_first(two_scripts):
    one, other = two_scripts
    one.tell("_last")
    await one.close()
    await until(lambda: other.end)
    await other.expect("_last")
    assert "expected _more, but the connection ended: the other side closed the connection" in await fails(
        other.expect("_more")
    )
    assert (await other.expect_end()).reason == "peer_closed"


# A script as a process


async def greets(peer):
    opening = await peer.expect("initialize")
    peer.answer(opening, {"protocolVersion": 1})
    prompt = await peer.expect("session/prompt")
    peer.send(says("hello"), says("from a process"))
    peer.answer(prompt, spoken.ending())
    await peer.expect_end()


async def is_disappointed(peer):
    peer.deadline = 5
    await peer.expect("initialize")


def texts_into(texts):
    client = Handlers()
    client.on(spoken.SessionNotification)(lambda notification: texts.append(text_of(notification)))
    return client


async def test_a_script_can_be_an_agent_in_a_process_of_its_own():
    texts = []
    async with Peer(ProcessTransport(script_command(greets)), texts_into(texts), role="client") as peer:
        await peer.initialize(spoken.InitializeRequest(1))
        await peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))
        assert texts == ["hello", "from a process"]
        end = await peer.connection.close()
        assert end.exit_code == 0


async def test_a_script_that_fails_in_a_process_says_why_on_stderr():
    async with Peer(ProcessTransport(script_command(__file__, "is_disappointed")), role="client") as peer:
        with pytest.raises(ConnectionClosed) as caught:
            await peer.request_raw("_example.com/hello")
        assert caught.value.exit_code == 1
        assert "expected initialize, got _example.com/hello (a request)" in caught.value.stderr


def test_a_script_s_command_names_its_file_and_function(tmp_path):
    assert script_command(greets)[1:] == ["-m", "accord.testing", __file__, "greets"]
    assert script_command(tmp_path / "a.py")[-2:] == [str(tmp_path / "a.py"), "script"]


# Both sides in memory


async def test_both_sides_are_connected_and_have_shaken_hands():
    agent, client = Handlers(), Handlers()
    agent.on_request("_example.com/a")(lambda _: "agent")
    client.on_request("_example.com/a")(lambda _: "client")
    declared = spoken.ClientCapabilities(terminal=True)
    offered = spoken.AgentCapabilities(load_session=True)
    async with connected(agent, client, agent_capabilities=offered, client_capabilities=declared) as link:
        assert await link.client.request_raw("_example.com/a") == "agent"
        assert await link.agent.request_raw("_example.com/a") == "client"
        assert link.client.capabilities.has("load_session")
        assert link.agent.capabilities.has("terminal")
    assert not link.agent.connection.is_open
    assert not link.client.connection.is_open
    assert ("initialize", True) not in agent.by_method


async def test_an_agent_s_own_initialize_is_used():
    agent, seen = Handlers(), []

    @agent.on(spoken.InitializeRequest)
    def initialize(request):
        seen.append(request)
        return spoken.InitializeResponse(1)

    async with connected(agent):
        assert len(seen) == 1


async def test_shaking_hands_can_be_left_to_the_test():
    async with connected(initialize=False) as link:
        assert link.client.capabilities.declared is None
        await link.client.initialize(spoken.InitializeRequest(1))


# Faults


class Recorder:
    def __init__(self):
        self.frames, self.events = [], []

    def received(self, frames):
        assert frames
        self.frames += frames

    def paused(self):
        self.events.append("paused")

    def resumed(self):
        self.events.append("resumed")

    def ended(self, end):
        self.events.append(end.reason)


async def faulty_pair(**options):
    here, there = pair()
    faulty, ours, theirs = FaultyTransport(here, **options), Recorder(), Recorder()
    await faulty.start(ours)
    await there.start(theirs)
    return faulty, ours, there, theirs


def numbered(count):
    return [b'{"n":%d}' % number for number in range(count)]


async def test_without_faults_nothing_changes():
    faulty, ours, there, theirs = await faulty_pair()
    faulty.send(numbered(10))
    there.send(numbered(10))
    await until(lambda: len(ours.frames) == len(theirs.frames) == 10)
    assert ours.frames == theirs.frames == numbered(10)
    await faulty.close()
    await there.close()
    assert (ours.events, theirs.events) == (["closed"], ["peer_closed"])


async def happening(seed, **faults):
    faulty, ours, there, theirs = await faulty_pair(incoming=Faults(**faults), outgoing=Faults(**faults), seed=seed)
    for frame in numbered(200):
        faulty.send([frame])
        there.send([frame])
        await asyncio.sleep(0)
    await there.close()
    await faulty.close()
    return ours.frames, theirs.frames, faulty.tally


async def test_the_same_seed_gives_the_same_faults():
    faults = {"drop": 0.1, "duplicate": 0.1, "corrupt": 0.1, "reorder": 0.1}
    first, second, other = await happening(1, **faults), await happening(1, **faults), await happening(2, **faults)
    assert first == second
    assert first[:2] != other[:2]


async def test_each_fault_does_what_it_says_and_is_counted():
    frames, _, tally = await happening(3, drop=0.2)
    assert set(frames) < set(numbered(200))
    assert frames == sorted(frames, key=numbered(200).index)
    assert tally.dropped > 40

    frames, _, tally = await happening(3, duplicate=0.2)
    assert list(dict.fromkeys(frames)) == numbered(200)
    assert len(frames) > 220
    assert tally.duplicated > 40

    frames, _, tally = await happening(3, corrupt=0.2)
    assert len(frames) == 200
    assert sum(frame not in numbered(200) for frame in frames) > 20
    assert all(b"\n" not in frame and len(frame) in (7, 8, 9) for frame in frames)
    assert tally.corrupted > 40

    frames, _, tally = await happening(3, reorder=0.2)
    assert frames != numbered(200)
    assert sorted(frames) == sorted(numbered(200))
    assert tally.reordered > 40


async def test_a_delay_keeps_the_order_and_loses_nothing(clock):
    _, ours, there, theirs = await faulty_pair(incoming=Faults(delay=60))
    for frame in numbered(100):
        there.send([frame])
    await until(lambda: there.unsent == 0)
    assert len(ours.frames) < 100
    await there.close()
    await until(lambda: theirs.events)
    for _ in range(100):
        await clock.advance(1)
    assert ours.frames == numbered(100)
    assert ours.events == ["peer_closed"]


async def test_what_is_late_comes_even_if_nothing_follows(clock):
    faulty, ours, there, _ = await faulty_pair(incoming=Faults(reorder=1))
    there.send([b"alone"])
    await until(lambda: there.unsent == 0)
    assert ours.frames == []
    await clock.advance(1)
    assert ours.frames == [b"alone"]
    await there.close()
    await faulty.close()


async def test_frames_are_held_and_released_by_hand():
    faulty, ours, there, theirs = await faulty_pair(high_water=50)
    faulty.hold("in")
    faulty.hold("out")
    there.send(numbered(10))
    faulty.send(numbered(10))
    await until(lambda: there.unsent == 0)
    assert (ours.frames, theirs.frames, ours.events) == ([], [], ["paused"])
    assert faulty.unsent == sum(map(len, numbered(10)))
    faulty.release("in")
    faulty.release("out")
    assert ours.frames == []
    await until(lambda: len(ours.frames) == len(theirs.frames) == 10)
    assert ours.events == ["paused", "resumed"]
    await faulty.close()
    await there.close()


async def test_a_side_can_be_made_to_stop_reading():
    faulty, ours, there, _ = await faulty_pair()
    faulty.stop_reading()
    faulty.resume_reading()
    there.send(numbered(3))
    await asyncio.wait([asyncio.ensure_future(there.flush())], timeout=0)
    assert there.unsent > 0
    assert ours.frames == []
    faulty.go_on_reading()
    await until(lambda: ours.frames)
    faulty.pause_reading()
    faulty.stop_reading()
    faulty.go_on_reading()
    there.send(numbered(3))
    assert there.unsent > 0
    await faulty.close()
    await there.close()


@pytest.mark.parametrize("way", ["in", "out"])
async def test_one_way_can_fall_silent_and_nobody_is_told(way):
    faulty, ours, there, theirs = await faulty_pair()
    faulty.silence(way)
    faulty.send(numbered(3))
    there.send(numbered(3))
    heard, deaf = (theirs, ours) if way == "in" else (ours, theirs)
    await until(lambda: len(heard.frames) == 3)
    assert deaf.frames == []
    assert ours.events == theirs.events == []
    assert faulty.tally.dropped == 3
    await there.close()
    await faulty.close()
    assert ours.events == ["peer_closed"]


async def test_a_cut_loses_what_is_under_way_and_both_sides_learn_it():
    faulty, ours, _, theirs = await faulty_pair()
    faulty.hold("out")
    faulty.send(numbered(3))
    end = await faulty.cut()
    assert end.reason == "broken"
    await until(lambda: theirs.events)
    assert (ours.events, theirs.events) == (["broken"], ["peer_closed"])
    assert theirs.frames == []
    assert (await faulty.close()).reason == "broken"


async def test_closing_does_not_wait_for_ever_for_what_is_held():
    faulty, _, _, theirs = await faulty_pair()
    faulty.hold("out")
    faulty.send(numbered(3))
    assert (await faulty.close(grace=0.01)).reason == "closed"
    await until(lambda: theirs.events)
    assert theirs.frames == []


async def test_a_cut_link_fails_what_waits_and_a_new_one_works():
    agent, texts = Handlers(), []

    @agent.on(spoken.PromptRequest)
    async def prompt(request, context):
        await context.peer.notify(chunk("before"))
        await forever()

    links = []

    def through(transport):
        links.append(FaultyTransport(transport))
        return links[-1]

    async with connected(agent, texts_into(texts), through=through) as link:
        asking = asyncio.create_task(link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go")))
        await until(lambda: texts)
        await links[0].cut()
        with pytest.raises(ConnectionClosed) as caught:
            await asking
        assert caught.value.reason == "broken"


@pytest.mark.parametrize("seed", range(10))
async def test_a_link_with_delays_and_pauses_keeps_every_promise(seed, clock):
    agent, texts = Handlers(), []
    chance = random.Random(seed)

    @agent.on(spoken.PromptRequest)
    async def prompt(request, context):
        for number in range(50):
            await context.peer.notify(chunk(str(number)))
        return spoken.ended("end_turn")

    def through(transport):
        faults = Faults(delay=1)
        return FaultyTransport(transport, incoming=faults, outgoing=faults, seed=seed)

    async def pass_time():
        while True:
            await clock.advance(0.1)
            await asyncio.sleep(0)

    passing = asyncio.create_task(pass_time())
    async with connected(agent, texts_into(texts), through=through) as link:
        for _ in range(3):
            texts.clear()
            if chance.random() < 0.5:
                link.client.connection.transport.stop_reading()
                asyncio.get_running_loop().call_later(3, link.client.connection.transport.go_on_reading)
            await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))
            assert texts == [*map(str, range(50))]
    passing.cancel()


async def test_an_agent_in_the_place_of_handlers_is_refused_with_the_way_to_connect_it():
    with pytest.raises(TypeError, match=r"takes Handlers, not Agent; .* accord.connect\(agent\)"):
        async with connected(accord.Agent("typed")):
            pass
