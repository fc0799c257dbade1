"""A client without `async`: sessions, replies, callbacks, threads, and what happens when things end badly."""

import asyncio
import gc
import os
import signal
import threading
from queue import SimpleQueue

import pytest

import accord
from tests.waiting import DEADLINE


@pytest.fixture
def agent(quick_agent):
    return quick_agent()


@pytest.fixture
def connect(agent):
    def connect(permissions=False, **options):
        return accord.sync.connect(agent.command, accord.Client(permissions=permissions), **options)

    return connect


def run_in_threads(count, work):
    """Call this with 0, 1, ... in as many threads; returns what it returned, and raises what it raised."""
    results, errors = {}, []

    def run(number):
        try:
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    if errors:
        raise errors[0]
    return [results[number] for number in range(count)]


def drop(held):
    """Forget what this list holds."""
    held.clear()
    gc.collect()


# Sessions and replies


def test_the_text_of_a_reply_is_there_when_the_turn_has_ended(connect):
    with connect() as remote:
        session = remote.new_session("/")
        assert session.prompt("say good morning").text == "good morning "
        assert session.state.messages[-1].text == "good morning "


def test_text_and_updates_are_iterated_as_they_come(connect):
    with connect() as remote:
        session = remote.new_session("/")
        assert list(session.prompt("say one two").iter_text()) == ["one ", "two "]
        reply = session.prompt("say three")
        assert [update.content.text for update in reply] == ["three "]
        assert reply.outcome().stop_reason == "end_turn"
        assert reply.done


def test_a_reply_can_be_read_after_the_block(connect):
    with connect() as remote:
        session = remote.new_session("/")
        reply = session.prompt("say bye now")
        assert reply.outcome().stop_reason == "end_turn"
    assert reply.text == "bye now "
    assert list(reply.iter_text()) == ["bye ", "now "]
    assert not session.is_open
    assert session.markdown().endswith("bye now \n")


def test_a_request_after_the_block_says_that_the_connection_was_closed(connect):
    with connect() as remote:
        session = remote.new_session("/")
    with pytest.raises(accord.ConnectionClosed, match="its `with` block has ended"):
        session.prompt("say too late")
    with pytest.raises(accord.ConnectionClosed):
        remote.new_session("/")


def test_a_session_is_the_same_object_as_long_as_it_is_used(connect):
    with connect() as remote:
        session = remote.new_session("/")
        assert remote.open_sessions[session.id] is session


def test_leaving_the_block_of_a_reply_cancels_its_turn(connect, agent):
    with connect() as remote:
        session = remote.new_session("/")
        with session.prompt("wait") as reply:
            assert next(reply.iter_text()) == "waiting"
        assert reply.cancelled
        assert reply.outcome().stop_reason == "cancelled"
    assert "cancelled" in agent.notes


def test_one_question_takes_one_line(agent):
    outcome = accord.ask("say hello", agent=agent.command)
    assert (outcome.text, outcome.stop_reason) == ("hello ", "end_turn")


def test_an_agent_that_cannot_be_started_is_one_clear_error():
    with pytest.raises(accord.ConnectionClosed, match="no-such-agent"), accord.sync.connect("no-such-agent"):
        pass


def test_it_works_inside_of_a_running_event_loop(connect):
    async def main():
        with connect() as remote:
            return remote.new_session("/").prompt("say hello").text

    assert asyncio.run(main()) == "hello "


def test_an_agent_of_this_program_runs_in_the_connections_thread():
    agent, threads = accord.Agent("here"), []

    @agent.on_prompt
    async def reply(turn):
        threads.append(threading.current_thread())
        await turn.say("hello")

    with accord.sync.connect(agent) as remote:
        assert remote.new_session("/").prompt("x").text == "hello"
    assert threads[0].name == "accord connection"


# Functions that answer the agent


def test_a_plain_function_answers_in_the_thread_that_waits(connect):
    seen = []

    def may_it(question):
        seen.append((threading.current_thread(), question.tool_call.title))
        return True

    with connect(may_it) as remote:
        assert remote.new_session("/").prompt("ask").text == "yes"
    assert seen == [(threading.main_thread(), "Dig")]


def test_a_function_that_blocks_does_not_hold_up_the_connection(connect):
    asked, answer = threading.Event(), threading.Event()

    def may_it(_):
        asked.set()
        return answer.wait(DEADLINE)

    with connect(may_it) as remote:
        session = remote.new_session("/")

        def meanwhile(_):
            assert asked.wait(DEADLINE)
            text = remote.new_session("/").prompt("say still here").text
            answer.set()
            return text

        def prompt(_):
            return session.prompt("ask").text

        assert run_in_threads(2, lambda number: (prompt, meanwhile)[number](number)) == ["yes", "still here "]


def test_a_function_answers_in_a_thread_of_its_own_while_no_thread_waits(connect):
    answered_in = []
    answered = threading.Event()

    def may_it(_):
        answered_in.append(threading.current_thread().name)
        answered.set()
        return True

    with connect(may_it) as remote:
        reply = remote.new_session("/").prompt("ask")
        assert answered.wait(DEADLINE)
        assert reply.text == "yes"
    assert "may_it" in answered_in[0]


def test_a_form_is_filled_in_by_a_plain_function_in_the_thread_that_waits():
    agent, threads = accord.Agent("asks"), []

    @agent.on_prompt
    async def ask(turn):
        answer = await turn.elicit("Name?", accord.v1.ElicitationSchema({"name": accord.v1.StringPropertySchema()}))
        await turn.say(answer.value["name"])

    def fill(_):
        threads.append(threading.current_thread())
        return {"name": "Ada"}

    with accord.sync.connect(agent, accord.Client(elicitation=fill)) as remote:
        assert remote.new_session("/").prompt("x").text == "Ada"
    assert threads == [threading.main_thread()]


def test_a_coroutine_function_answers_in_the_event_loop(connect):
    seen = []

    async def may_it(_):
        await asyncio.sleep(0)
        seen.append(threading.current_thread().name)
        return True

    with connect(may_it) as remote:
        assert remote.new_session("/").prompt("ask").text == "yes"
    assert seen == ["accord connection"]


def test_a_handler_of_a_message_may_block(connect):
    updates = []
    with connect() as remote:
        session = remote.new_session("/")

        @remote.on(accord.v1.RequestPermissionRequest)
        def answer(request: accord.v1.RequestPermissionRequest) -> accord.v1.RequestPermissionResponse:
            updates.append(threading.current_thread())
            return accord.v1.RequestPermissionResponse.selected(request.options[0])

        assert session.prompt("ask").text == "yes"
    assert updates == [threading.main_thread()]


def test_waiting_for_the_agent_in_a_function_that_answers_it_is_an_error_with_words(connect, caplog):
    errors = []

    def may_it(_):
        assert session.state.messages  # reading is allowed
        try:
            return bool(remote.new_session("/"))
        except RuntimeError as error:
            errors.append(str(error))
            raise

    with connect(may_it) as remote:
        session = remote.new_session("/")
        assert session.prompt("ask").text == "no"
    assert "the agent waits for its answer" in errors[0]


def test_an_observer_that_waits_for_the_agent_is_an_error_with_words(connect):
    errors = []
    with connect() as remote:
        session = remote.new_session("/")

        def changed(_):
            assert session.state.title is None  # reading is allowed
            try:
                remote.new_session("/")
            except RuntimeError as error:
                errors.append(str(error))

        stop = session.on_change(changed)
        assert session.prompt("say hello").text
        stop()
        count = len(errors)
        assert session.prompt("say hello").text
    assert "is called in the connection's own thread" in errors[0]
    assert len(errors) == count


def test_a_function_that_answers_may_use_another_connection(connect, quick_agent):
    def may_it(_):
        return accord.ask("say sure", agent=quick_agent().command).text == "sure "

    with connect(may_it) as remote:
        assert remote.new_session("/").prompt("ask").text == "yes"


def test_a_function_that_ends_the_program_ends_the_wait(connect, agent):
    def may_it(_):
        raise SystemExit(7)

    with pytest.raises(SystemExit), connect(may_it) as remote:
        remote.new_session("/").prompt("ask").outcome()
    assert "cancelled" in agent.notes


# Threads


def test_eight_threads_use_one_connection(connect):
    with connect(lambda _: True) as remote:

        def talk(number):
            session = remote.new_session("/")
            said = [session.prompt(f"say {number} {turn}").text for turn in range(5)]
            return [*said, session.prompt("ask").text, len(session.state.messages)]

        results = run_in_threads(8, talk)
    assert results == [[*[f"{number} {turn} " for turn in range(5)], "yes", 12] for number in range(8)]


def test_eight_threads_have_a_connection_each(quick_agent):
    agents = [quick_agent() for _ in range(8)]

    def talk(number):
        with accord.sync.connect(agents[number].command) as remote:
            return list(remote.new_session("/").prompt(f"say {number} times").iter_text())

    assert run_in_threads(8, talk) == [[f"{number} ", "times "] for number in range(8)]


def test_threads_that_wait_are_told_when_the_connection_is_closed(connect, agent):
    with connect() as remote:
        replies = [remote.new_session("/").prompt("wait") for _ in range(4)]

        def wait(number):
            texts = replies[number].iter_text()
            assert next(texts) == "waiting"
            begun.release()
            with pytest.raises(accord.ConnectionClosed):
                next(texts)

        begun = threading.Semaphore(0)
        waiting = threading.Thread(target=run_in_threads, args=(4, wait))
        waiting.start()
        for _ in replies:
            assert begun.acquire(timeout=DEADLINE)
    waiting.join(DEADLINE)
    assert not waiting.is_alive()


# Endings


@pytest.mark.parametrize("wait", ["outcome", "iter_text"])
def test_an_agent_that_is_killed_during_a_turn_ends_the_wait_with_its_signal(connect, agent, wait):
    with connect() as remote:
        reply = remote.new_session("/").prompt("wait")
        next(reply.iter_text())
        os.kill(agent.pid, signal.SIGKILL)
        with pytest.raises(accord.ConnectionClosed, match="signal 9"):
            list(getattr(reply, wait)())


def test_an_agent_that_died_is_restarted(agent):
    events = SimpleQueue()
    restart = accord.Restart(first_pause=0.0, on_event=events.put)
    with accord.sync.connect(agent.command, restart=restart) as remote:
        reply = remote.new_session("/").prompt("wait")
        next(reply.iter_text())
        os.kill(agent.pid, signal.SIGKILL)
        with pytest.raises(accord.ConnectionClosed):
            reply.outcome()
        assert events.get(timeout=DEADLINE).agent_is_back
        assert remote.new_session("/").prompt("say back again").text == "back again "


def test_an_error_in_the_block_ends_the_agent(connect, agent):
    def fail():
        with connect() as remote:
            remote.new_session("/").prompt("wait")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(ProcessLookupError):
        os.kill(agent.pid, 0)


def test_a_connection_without_a_block_is_closed_by_hand(agent):
    remote = accord.sync.open(agent.command)
    assert remote.new_session("/").prompt("say hello").text == "hello "
    remote.close()
    remote.close()
    with pytest.raises(ProcessLookupError):
        os.kill(agent.pid, 0)


def test_a_connection_that_is_dropped_ends_with_a_warning_and_not_before(agent):
    held = [accord.sync.open(agent.command).new_session("/")]
    gc.collect()
    assert held[0].prompt("say still here").text == "still here "
    with pytest.warns(ResourceWarning, match=r"use `with accord.sync.connect"):
        drop(held)
    agent.wait_for("end of input")
