"""The end of a link: what was received is delivered, what waits is told, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys

import pytest

from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.errors import ConnectionClosed
from accord.testing import ScriptedPeer, connected
from accord.transports.memory_transport import pair
from accord.transports.process_transport import ProcessTransport
from tests.interaction.staging import ask, chunk, forever, prompt_params, result, says, tell, text_of, turns, until
from tests.interaction.versions import spoken

QUICK = Limits(grace=0.05)
"""For links whose handlers refuse to end."""


def prompting(peer, session="s", **options):
    return asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId(session), "go"), **options))


def collecting(texts, *, slowly=False):
    client = Handlers()

    async def take(notification):
        await asyncio.sleep(0)
        texts.append(text_of(notification))

    client.on(spoken.SessionNotification)(take if slowly else lambda notification: texts.append(text_of(notification)))
    return client


# The other side ends


@pytest.mark.uvloop
@pytest.mark.parametrize("slowly", [False, True])
async def test_everything_received_before_the_end_is_delivered(connect, slowly):
    texts = []
    async with connect.as_agent(collecting(texts, slowly=slowly)) as (script, peer):
        asking, other = prompting(peer), prompting(peer, "t")
        call = await script.expect("session/prompt")
        await script.expect("session/prompt")
        script.send(*(says(str(number)) for number in range(100)), result(call, **spoken.ending()))
        script.send(says("afterwards"))
        await script.close()
        assert spoken.end_of(await asking) == "end_turn"
        assert (await peer.connection.closed()).reason == "peer_closed"
        await asyncio.wait([other])
        assert isinstance(other.exception(), ConnectionClosed)
        assert other.exception().reason == "peer_closed"
        assert texts == [*map(str, range(100)), "afterwards"]


async def test_pending_requests_fail_only_when_the_updates_before_the_end_are_handled(connect):
    texts = []
    async with connect.as_agent(collecting(texts, slowly=True)) as (script, peer):
        asking = prompting(peer)
        await script.expect("session/prompt")
        script.send(*(says(str(number)) for number in range(20)))
        await script.close()
        with pytest.raises(ConnectionClosed):
            await asking
        assert texts == [*map(str, range(20))]


@pytest.mark.uvloop
async def test_after_the_end_everything_fails_at_once(connect):
    async with connect.as_agent() as (script, peer):
        await script.close()
        await peer.connection.closed()
        assert not peer.connection.is_open
        for attempt in (
            peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go")),
            peer.request_raw("_example.com/ask"),
            peer.notify(spoken.CancelNotification(spoken.SessionId("s"))),
            peer.notify_raw("_example.com/news"),
        ):
            with pytest.raises(ConnectionClosed) as caught:
                await attempt
            assert caught.value.reason == "peer_closed"


@pytest.mark.uvloop
@pytest.mark.parametrize("reason", ["closed", "peer_closed"])
async def test_a_call_that_was_made_and_is_awaited_only_after_the_end_fails_as_well(connect, reason):
    async with connect.as_agent() as (script, peer):
        call = peer.connection.call("_example.com/ask")
        calling = asyncio.create_task(peer.connection.call("_example.com/ask"))
        asking = asyncio.create_task(peer.request_raw("_example.com/ask"))
        await (peer.close() if reason == "closed" else script.close())
        await peer.connection.closed()
        for attempt in (call, calling, asking):
            with pytest.raises(ConnectionClosed):
                async with asyncio.timeout(5):
                    await attempt


async def test_handlers_that_do_not_end_are_cancelled_after_the_grace(connect, clock):
    client, log = Handlers(), []

    async def stay(what):
        log.append(f"{what} started")
        try:
            await forever()
        except asyncio.CancelledError:
            log.append(f"{what} cancelled")
            raise

    client.on_notification("_example.com/news")(lambda _: stay("notification"))
    client.on_request("_example.com/work")(lambda _: stay("request"))
    async with connect.as_agent(client, limits=Limits(grace=60)) as (script, peer):
        script.send(tell("_example.com/news"), ask("_example.com/work", 1), tell("_example.com/news"))
        await script.expect_silence()
        await script.close()
        await until(lambda: not peer.connection.is_open)
        await turns()
        await clock.advance(59)
        assert log == ["notification started", "request started"]
        await clock.advance(2)
        await peer.connection.closed()
        assert sorted(log[2:]) == ["notification cancelled", "request cancelled"]


async def test_a_handler_that_refuses_to_end_does_not_hold_up_the_end(connect, caplog):
    client, stubborn = Handlers(), asyncio.Event()

    async def stay(params):
        while not stubborn.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await stubborn.wait()

    client.on_notification("_example.com/news")(stay)
    client.on_request("_example.com/work")(stay)
    async with connect.as_agent(client, limits=QUICK) as (script, peer):
        script.send(tell("_example.com/news"), ask("_example.com/work", 1))
        await script.expect_silence()
        await peer.close()
        await script.expect_error(1, -32800)
        assert "does not end when it is cancelled" in caplog.text
        stubborn.set()


def asks_for_ever(handlers, stage):
    @handlers.on_request("_example.com/ask-back")
    async def ask_back(params, context):
        try:
            await context.peer.request_raw("_example.com/asked-back")
        except ConnectionClosed as error:
            stage.tell("failed", reason=error.reason)
            raise

    @handlers.on_notification("_example.com/news")
    async def news(params, context):
        try:
            await context.peer.request_raw("_example.com/asked-back")
        except ConnectionClosed as error:
            stage.tell("failed", reason=error.reason)


async def test_a_handler_that_waits_for_an_answer_learns_of_the_end(connect):
    async with connect.as_client(asks_for_ever) as script:
        script.tell("_example.com/news")
        await script.expect("_example.com/asked-back")
        script.call("_example.com/ask-back")
        await script.expect("_example.com/asked-back")
        await script.close()
        assert await script.told("failed") == {"reason": "peer_closed"}
        assert await script.told("failed") == {"reason": "peer_closed"}


def answers_late(handlers, stage):
    @handlers.on_request("_example.com/slow")
    async def slow(params):
        await stage.cue("finish")
        return {"slow": True}


@pytest.mark.needs("a process")
async def test_what_was_asked_before_the_end_of_input_is_still_answered(connect):
    """The end of an agent's input is the end of what it receives, not of what it may send."""
    pipe = asyncio.subprocess.PIPE
    async with connect.command(answers_late, {"limits": {"grace": 30}}) as (command, backstage):
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        process.stdin.write(json.dumps(ask("initialize", 1, **spoken.hello)).encode() + b"\n")
        process.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"_example.com/slow"}\n')
        process.stdin.close()
        assert b'"id":1' in await process.stdout.readline()
        backstage.cue("finish")
        assert await process.stdout.readline() == b'{"jsonrpc":"2.0","id":2,"result":{"slow":true}}\n'
        assert await process.wait() == 0


# We end


@pytest.mark.uvloop
async def test_closing_fails_what_waits_and_tells_the_other_side(connect):
    async with connect.as_agent() as (script, peer):
        asking = prompting(peer)
        await script.expect("session/prompt")
        end = await peer.connection.close()
        assert end.reason == "closed"
        with pytest.raises(ConnectionClosed) as caught:
            await asking
        assert caught.value.reason == "closed"
        assert (await script.expect_end()).reason == "peer_closed"


@pytest.mark.uvloop
async def test_closing_twice_and_at_the_same_time_is_fine(connect):
    async with connect.as_agent() as (_, peer):
        ends = await asyncio.gather(*(peer.connection.close() for _ in range(3)))
        ends.append(await peer.connection.close())
        assert [end.reason for end in ends] == ["closed"] * 4
        await peer.close()


async def test_both_sides_may_close_at_the_same_time(connect):
    async with connect.as_agent() as (script, peer):
        await asyncio.gather(peer.close(), script.close())
        assert not peer.connection.is_open


@pytest.mark.uvloop
async def test_what_was_sent_before_closing_still_arrives(connect):
    async with connect.as_agent() as (script, peer):
        for number in range(50):
            await peer.notify_raw("_example.com/news", {"number": number, "text": "x" * 10_000})
        await peer.close()
        for number in range(50):
            assert (await script.expect("_example.com/news"))["params"]["number"] == number
        await script.expect_end()


@pytest.mark.requirement("jsonrpc.answer.exactly-one", "cancel-request.internal-same-code")
async def test_requests_that_are_lost_in_shutdown_are_answered(connect):
    client = Handlers()
    client.on_request("_example.com/work")(lambda _: forever())

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await forever()

    @client.on_request("_example.com/tidy")
    async def tidy(params):
        try:
            await forever()
        except asyncio.CancelledError:
            return {"partial": True}

    async with connect.as_agent(client, limits=QUICK) as (script, peer):
        script.send(
            ask("_example.com/work", 1),
            says("stuck"),
            ask("_example.com/work", 2, sessionId="s"),
            ask("_example.com/tidy", 3),
        )
        await script.expect_silence()
        script.send(ask("_example.com/work", 4), ask("_example.com/tidy", 5))
        await script.expect_silence()
        await peer.close()
        answers = {answer["id"]: answer for answer in [await script.receive() for _ in range(5)]}
        assert [answers[it]["error"]["code"] for it in (1, 2, 4)] == [-32800] * 3
        assert [answers[it]["result"] for it in (3, 5)] == [{"partial": True}] * 2
        await script.expect_end()


async def test_a_request_that_comes_as_we_close_is_started_and_cancelled_or_never_heard(connect):
    client, started = Handlers(), []

    @client.on_request("_example.com/work")
    async def work(params):
        started.append(params["number"])
        await forever()

    async with connect.as_agent(client, limits=QUICK) as (script, peer):
        closing = asyncio.create_task(peer.close())
        script.send(*(ask("_example.com/work", number, number=number) for number in range(5)))
        await closing
        await until(lambda: script.end)
        assert peer.connection.statistics().handling == 0


@pytest.mark.needs("an end of one half")
async def test_an_agent_that_speaks_while_it_is_closed_leaves_no_handler_behind(connect):
    """While we go down the ladder the agent may still ask; nobody would be left to answer or to cancel."""
    client, log = Handlers(), []

    async def stay(params):
        log.append("started")
        try:
            await forever()
        finally:
            log.append("ended")

    client.on_request("_example.com/late")(stay)
    client.on_notification("_example.com/late")(stay)
    hasty = {"limits": {"grace": 0.05}}
    async with connect(speaks_at_the_end, client, agent_options=hasty) as link:
        assert await link.client.request_raw("_example.com/hello") == {}
        await link.connection.close()
        assert link.statistics.handling == 0
    assert log.count("started") == log.count("ended")


def speaks_at_the_end(handlers, stage):
    @handlers.on_request("_example.com/hello")
    async def hello(params, context):
        context.after_response(wait, context)
        return {}

    async def wait(context):
        try:
            await forever()
        finally:
            for _ in range(3):
                context.peer.connection._outbox.put(b'{"jsonrpc":"2.0","method":"_example.com/late","params":{}}')
            context.peer.connection._outbox.put(b'{"jsonrpc":"2.0","id":"late","method":"_example.com/late"}')


# From inside


def closes_itself(handlers, stage):
    @handlers.on_request("_example.com/close")
    async def close(params, context):
        stage.tell("closing")
        end = await context.peer.connection.close()
        stage.tell("closed", reason=end.reason)
        return {"closed": True}

    @handlers.on_notification("_example.com/close")
    async def close_too(params, context):
        await context.peer.close()
        stage.tell("closed")

    @handlers.on_request("_example.com/close-after")
    async def close_after(params, context):
        context.after_response(context.peer.close)
        return {"closing": True}

    @handlers.on_request("_example.com/close-in-child")
    async def close_in_child(params, context):
        async with asyncio.TaskGroup() as group:
            group.create_task(context.peer.close())
        return {"closed": True}


@pytest.mark.uvloop
@pytest.mark.parametrize("method", ["close", "close-in-child"])
async def test_a_handler_may_close_its_own_connection_and_is_still_answered_for(connect, method):
    async with connect.as_client(closes_itself) as script:
        asked = script.call(f"_example.com/{method}")
        answer = await script.expect_answer(asked)
        assert answer.get("result") == {"closed": True} or answer["error"]["code"] == -32800
        assert (await script.expect_end()).reason in ("peer_closed", "process_ended")


async def test_a_notification_s_handler_may_close_its_own_connection(connect):
    async with connect.as_client(closes_itself) as script:
        script.tell("_example.com/close")
        assert (await script.expect_end()).reason in ("peer_closed", "process_ended")


async def test_closing_after_a_response_sends_the_response_first(connect):
    async with connect.as_client(closes_itself) as script:
        assert await script.request("_example.com/close-after") == {"closing": True}
        assert (await script.expect_end()).reason in ("peer_closed", "process_ended")


async def test_closing_another_connection_from_inside_a_handler_waits_for_its_end(connect):
    """An agent that uses an agent of its own has it closed, and all of it ended, when its `async with` is over."""
    inner_handlers, outer_handlers, ended = Handlers(), Handlers(), []

    @inner_handlers.on_request("_example.com/stay")
    async def stay(params):
        try:
            await forever()
        finally:
            ended.append("inner")

    @outer_handlers.on_request("_example.com/use")
    async def use(params):
        here, there = pair()
        async with ScriptedPeer(there) as script, Peer(here, inner_handlers, role="client") as inner:
            script.call("_example.com/stay")
            await script.expect_silence()
            await inner.close()
            return {"ended": list(ended)}

    async with connect.as_agent(outer_handlers) as (script, _):
        assert await script.request("_example.com/use") == {"ended": ["inner"]}


async def test_an_agent_may_use_an_agent_of_its_own_inside_a_handler():
    """Each link keeps its order, so what is relayed from one to the other keeps it too."""
    inner_agent, outer, texts = Handlers(), Handlers(), []

    @inner_agent.on(spoken.PromptRequest)
    async def inner_prompt(request, context):
        for number in range(3):
            await context.peer.notify(chunk(f"inner {number}", request.session_id))
        return spoken.ended("end_turn")

    @outer.on(spoken.PromptRequest)
    async def outer_prompt(request, context):
        relayed = Handlers()

        @relayed.on(spoken.SessionNotification)
        async def relay(notification):
            await asyncio.sleep(0)
            await context.peer.notify(notification)

        async with connected(inner_agent, relayed) as link:
            answer = await link.client.request(request)
        await context.peer.notify(chunk("outer"))
        return answer

    async with connected(outer, collecting(texts, slowly=True)) as link:
        answer = await link.client.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go"))
        assert spoken.end_of(answer) == "end_turn"
        assert texts == ["inner 0", "inner 1", "inner 2", "outer"]


async def test_a_task_that_a_handler_left_behind_waits_when_it_closes(connect):
    handlers, tasks, ended = Handlers(), [], []

    @handlers.on_request("_example.com/leave-behind")
    async def leave_behind(params, context):
        tasks.append(asyncio.create_task(close_later(context.peer)))

    @handlers.on_request("_example.com/stay")
    async def stay(params):
        try:
            await forever()
        finally:
            ended.append(True)

    go = asyncio.Event()

    async def close_later(peer):
        await go.wait()
        await peer.close()
        return list(ended)

    async with connect.as_agent(handlers) as (script, _):
        await script.request("_example.com/leave-behind")
        script.call("_example.com/stay")
        await script.expect_silence()
        go.set()
        assert await tasks[0] == [True]


async def test_what_comes_after_an_answer_does_not_outlive_the_connection(connect):
    client, log = Handlers(), []

    @client.on_request("_example.com/work")
    async def work(params, context):
        context.after_response(linger)
        await forever()

    async def linger():
        log.append("lingers")
        try:
            await forever()
        finally:
            log.append("ended")

    async with connect.as_agent(client, limits=QUICK) as (script, peer):
        script.call("_example.com/work")
        await script.expect_silence()
        await peer.close()
        assert log in ([], ["lingers", "ended"])


# Bounded


async def test_closing_does_not_wait_for_ever_for_a_side_that_stopped_reading(connect):
    async with connect.as_agent(limits=QUICK) as (script, peer):
        script.transport.pause_reading()
        await peer.notify_raw("_example.com/news")
        assert (await peer.connection.close()).reason == "closed"
        script.transport.resume_reading()


@pytest.mark.uvloop
async def test_a_cancellation_during_closing_comes_through_and_leaves_nothing_behind(connect):
    client, log = Handlers(), []

    @client.on_request("_example.com/work")
    async def work(params):
        try:
            await forever()
        except asyncio.CancelledError:
            for _ in range(5):
                await asyncio.sleep(0)
            log.append("tidied up")
            raise

    async with connect.as_agent(client) as (script, peer):
        script.call("_example.com/work")
        await script.expect_silence()
        closing = asyncio.create_task(peer.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert log == ["tidied up"]


@pytest.mark.uvloop
async def test_leaving_because_of_an_exception_closes_as_well(connect):
    with pytest.raises(ZeroDivisionError):
        async with connect.as_agent() as (_, peer):
            raise ZeroDivisionError
    assert not peer.connection.is_open


async def test_a_sender_that_waits_for_room_is_let_go_at_the_end(connect):
    async with connect.as_agent(transport={"high_water": 1000}, limits=QUICK) as (script, peer):
        script.transport.pause_reading()
        sending = asyncio.create_task(keep_sending(peer))
        await until(lambda: peer.connection._outbox.full)
        await peer.close()
        with pytest.raises(ConnectionClosed):
            await sending
        script.transport.resume_reading()


async def keep_sending(peer):
    while True:
        await peer.notify_raw("_example.com/news", {"text": "x" * 5_000})


# A process ends


def dies(handlers, stage):
    @handlers.on_request("_example.com/die")
    async def die(params, context):
        await context.peer.notify(chunk("last words"))
        await turns(1)  # what is sent in a turn of the loop goes out at its end
        print(params["words"], file=sys.stderr, flush=True)
        if params["signal"]:
            os.kill(os.getpid(), params["signal"])
        os._exit(params["code"])


@pytest.mark.needs("a process")
@pytest.mark.uvloop
async def test_the_death_of_a_process_fails_what_waits_and_says_how_it_died(connect):
    texts = []
    async with connect(dies, collecting(texts)) as link:
        params = {"words": "out of memory", "signal": 0, "code": 3}
        with pytest.raises(ConnectionClosed) as caught:
            await link.client.request_raw("_example.com/die", params)
        assert (caught.value.reason, caught.value.exit_code) == ("process_ended", 3)
        assert "out of memory" in caught.value.stderr
        assert "(exit code 3): out of memory" in str(caught.value)
        assert texts == ["last words"]
        assert (await link.connection.closed()).exit_code == 3


@pytest.mark.needs("a process")
async def test_a_process_that_is_killed_says_by_which_signal(connect):
    async with connect(dies) as link:
        params = {"words": "", "signal": int(signal.SIGKILL), "code": 0}
        with pytest.raises(ConnectionClosed) as caught:
            await link.client.request_raw("_example.com/die", params)
        assert caught.value.exit_code == -signal.SIGKILL
        assert "killed by signal 9" in str(caught.value)


@pytest.mark.needs("a process")
@pytest.mark.uvloop
@pytest.mark.requirement("jsonrpc.answer.exactly-one")
async def test_an_agent_that_is_interrupted_answers_what_it_owes_and_ends(connect):
    async with connect.as_client(stays) as script:
        asked = script.call("session/prompt", prompt_params())
        await script.told("started")
        os.kill(script.transport.pid, signal.SIGINT)
        await script.expect_error(asked, -32800)
        end = await script.expect_end()
        assert end.exit_code in (130, -signal.SIGINT)


@pytest.mark.needs("a process")
async def test_a_program_that_cannot_be_started_says_why_and_leaves_nothing(connect):
    with pytest.raises(ConnectionClosed) as caught:
        async with Peer(ProcessTransport(["no-such-agent-anywhere"]), role="client"):
            raise AssertionError("it cannot be open")
    assert caught.value.reason == "died_at_start"
    assert "no-such-agent-anywhere" in str(caught.value)


@pytest.mark.needs("a process", "Peer.initialize")
async def test_a_process_that_ends_before_it_answered_initialize_died_at_start(connect):
    program = "import sys; sys.stdin.readline(); print('no key was given', file=sys.stderr); sys.exit(4)"
    async with Peer(ProcessTransport([sys.executable, "-c", program]), role="client") as peer:
        with pytest.raises(ConnectionClosed) as caught:
            await peer.initialize(spoken.InitializeRequest(1))
        assert (caught.value.reason, caught.value.exit_code) == ("died_at_start", 4)
        assert "no key was given" in str(caught.value)


def stays(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request):
        stage.tell("started")
        try:
            await forever()
        except asyncio.CancelledError:
            stage.tell("cancelled")
            raise


async def test_an_agent_whose_client_leaves_in_the_middle_of_a_turn_has_the_time_to_tidy_up(connect):
    async with connect(stays) as link:
        asking = prompting(link.client)
        await link.told("started")
        await link.connection.close()
        await link.told("cancelled")
        with pytest.raises(ConnectionClosed):
            await asking


@pytest.mark.requirement("stdio.client-closes-stdin", "stdio.client-launches-agent")
async def test_an_agent_s_turns_are_cancelled_when_its_client_goes(connect):
    async with connect.as_client(stays, limits={"grace": 0.05}) as script:
        script.call("session/prompt", prompt_params())
        await script.told("started")
        end = await script.close()
        await script.told("cancelled")
        if connect.over == "stdio":
            assert end.exit_code == 0


def asks_back(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        await context.peer.request_raw("_example.com/never")


@pytest.mark.needs("the agent in this program")
async def test_a_handler_that_ends_with_its_link_is_no_failure(connect, caplog):
    async with connect.as_client(asks_back) as script:
        script.call("session/prompt", {"sessionId": "s", "prompt": []})
        await script.expect("_example.com/never")
        await script.close()
    assert "the handler of session/prompt ended with its connection" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
