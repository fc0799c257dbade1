"""Plain functions of an agent: each runs in a thread of its own, with a turn that needs no `await`."""

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import accord
from accord import Agent, PeerError, v1
from accord.agent.author_thread import AuthorThread
from tests.waiting import DEADLINE


def agent_with(work, **options):
    agent = Agent("plain", **options)
    agent.on_prompt(work)
    return agent


async def outcome_of(work, *, client=None, folder="/", version=1, **options):
    async with accord.connect(agent_with(work, **options), client, versions=(version,)) as remote:
        session = await remote.new_session(folder)
        return await session.prompt("go")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_plain_function_has_all_that_an_async_one_has(tmp_path, version):
    (tmp_path / "a.txt").write_text("one two")
    seen = []

    def work(turn: accord.sync.Turn) -> None:
        plan = turn.plan("Read", "Count")
        with plan.step("Read"):
            text = turn.files.read("a.txt")
        with turn.tool("Count", kind="execute") as tool:
            if tool.ask():
                with tool.command(["wc", "-w", "a.txt"]) as command:
                    seen.append(command.wait(timeout=60).output.split()[0])
            tool.diff("b.txt", None, text)
        turn.files.write("b.txt", text.upper())
        message = turn.message("Working")
        message.replace("Done: ")
        with turn.subagent("Look again") as subagent:
            subagent.say("It is so.")
        seen.append(turn.elicit("Sure?", v1.ElicitationSchema({}), fallback={}).action)
        seen.append(turn.ask("Push").allowed)
        seen.append(turn.usage(1, 100))
        turn.session.set_title("Counting")
        seen.append(turn.session.title)
        turn.session.state = {"words": 2}
        seen.append(turn.session.state["words"])
        seen.append(next(it.text for it in turn.session.history().messages))
        turn.think("Hm")
        turn.say("bye")

    outcome = await outcome_of(work, client=accord.Client(permissions=lambda _: True), folder=tmp_path, version=version)
    assert outcome.stop_reason == "end_turn"
    assert outcome.text.endswith("bye")
    assert (tmp_path / "b.txt").read_text() == "ONE TWO"
    assert seen == ["2", "unavailable", True, True, "Counting", 2, "go"]
    assert outcome.tool_calls[0].status == "completed"


async def test_sessions_offer_what_a_plain_function_gives_them():
    agent, chosen = agent_with(lambda turn: turn.say(turn.session.modes.current)), []

    @agent.on_session
    def opened(session):
        session.modes.offer(["ask", "edit"])
        session.config.offer("loud", "Loud")
        session.commands.offer("shout", "Shout", lambda turn, text: turn.say(text.upper()))
        assert list(session.config) == ["mode", "loud"]
        assert [it.name for it in session.commands] == ["shout"]
        assert session == session
        session.resources.callback(chosen.append, "closed")

    @agent.on_config
    def changed(session, option_id, value):
        chosen.append((session.cwd.name, option_id, value))

    async with accord.connect(agent) as remote:
        session = await remote.new_session("/tmp")
        assert (await session.prompt("Which?")).text == "ask"
        assert (await session.prompt("/shout hello")).text == "HELLO"
        await session.set_mode("edit")
        assert (await session.prompt("Which?")).text == "edit"
    assert chosen == [("tmp", "mode", "edit"), "closed"]


async def test_a_plain_function_blocks_no_other_session():
    together = threading.Barrier(20)

    def work(turn):
        together.wait(DEADLINE)
        turn.say("met")

    async with accord.connect(agent_with(work)) as remote:
        sessions = [await remote.new_session("/") for _ in range(20)]
        outcomes = await asyncio.gather(*(session.prompt("go") for session in sessions))
    assert [it.text for it in outcomes] == ["met"] * 20


async def test_context_variables_are_those_of_the_turn():
    variable = contextvars.ContextVar("variable", default="unset")
    agent, seen = Agent("context"), []

    @agent.before(v1.PromptRequest)
    def set_it(message):
        variable.set("set")

    @agent.on_prompt
    def work(turn):
        seen.append(variable.get())
        turn.start(lambda: seen.append(variable.get())).result()

    async with accord.connect(agent) as remote:
        await (await remote.new_session("/")).prompt("go")
    assert len(set(seen)) == 1


# Cancelling


@pytest.mark.parametrize("where", ["in a call", "between two calls", "in a generator"])
async def test_a_cancel_is_an_exception_that_blocks_see_once(serve, where):
    begun, cancelled, seen = threading.Event(), threading.Event(), []

    def work(turn):
        try:
            with turn.tool("Wait", kind="execute") as tool:
                begun.set()
                if where == "in a call":
                    tool.ask()
                else:
                    assert cancelled.wait(DEADLINE)
                    turn.say("too late")
        except BaseException as error:
            seen.append(type(error))
            turn.say("bye")
            raise
        finally:
            turn.say("!")

    def said(turn):
        try:
            begun.set()
            assert cancelled.wait(DEADLINE)
            yield "too late"
        finally:
            seen.append(asyncio.CancelledError)
            turn.say("bye!")

    async with serve(agent_with(said if where == "in a generator" else work)) as editor:
        session = await editor.open()
        asked = asyncio.Event()

        async def wait(request):
            asked.set()
            await asyncio.Event().wait()

        handlers = accord.Handlers()
        handlers.on(v1.RequestPermissionRequest)(wait)
        editor.handle(handlers)
        prompt = asyncio.ensure_future(editor.prompt(session, "go"))
        await asyncio.to_thread(begun.wait, DEADLINE)
        if where == "in a call":
            await asyncio.wait_for(asked.wait(), DEADLINE)
        await editor.notify(v1.CancelNotification(session))
        await editor.request(v1.ListSessionsRequest())  # the cancel has arrived
        cancelled.set()
        assert (await prompt).stop_reason == "cancelled"
        assert editor.text == "bye!"
    assert seen == [asyncio.CancelledError]
    assert [it.status for it in editor.of(v1.ToolCallProgress)][-1:] == (
        [] if where == "in a generator" else ["failed"]
    )


async def test_a_thread_that_makes_no_call_is_left_behind_and_then_told(serve):
    begun, go_on, told = threading.Event(), threading.Event(), []
    ended = threading.Event()

    def work(turn):
        begun.set()
        go_on.wait(DEADLINE)
        for _ in range(2):
            try:
                turn.say("too late")
            except asyncio.CancelledError:
                told.append("cancelled")
        ended.set()

    async with serve(agent_with(work, cancel_grace=0)) as editor:
        session = await editor.open()
        prompt = asyncio.ensure_future(editor.prompt(session, "go"))
        await asyncio.to_thread(begun.wait, DEADLINE)
        await editor.notify(v1.CancelNotification(session))
        assert (await prompt).stop_reason == "cancelled"
    go_on.set()
    assert await asyncio.to_thread(ended.wait, DEADLINE)
    assert told == ["cancelled", "cancelled"]


def test_a_hanging_thread_does_not_keep_the_program(tmp_path):
    program = tmp_path / "hangs.py"
    program.write_text(
        "import time, accord\n"
        "agent = accord.Agent('hangs')\n"
        "@agent.on_prompt\n"
        "def work(turn):\n"
        "    turn.say('hello')\n"
        "    time.sleep(3600)\n"
        "agent.run()\n"
    )
    talk = (
        "import sys, accord\n"
        "with accord.sync.connect([sys.executable, sys.argv[1]]) as remote:\n"
        "    reply = remote.new_session('.').prompt('go')\n"
        "    print(next(reply.iter_text()))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", talk, str(program)], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout == "hello\n"
    assert "ended by force" not in ran.stderr


# Threads


async def test_threads_of_the_author_s_use_the_turn_and_end_with_it():
    def work(turn):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: turn.say(str(number)), range(8)))
        started = [turn.start(count, turn, number) for number in (1, 2)]
        assert [it.result() for it in started] == [1, 2]
        assert all(it.done() for it in started)

    def count(turn, number):
        with turn.tool(f"Count {number}"):
            return number

    outcome = await outcome_of(work)
    assert sorted(outcome.text) == list("01234567")
    assert [it.status for it in outcome.tool_calls] == ["completed", "completed"]


async def test_what_is_started_must_be_a_function_and_not_its_result():
    def work(turn):
        with pytest.raises(TypeError, match=r"start\(\) takes a function"):
            turn.start(turn.text.upper())
        turn.say("told")

    assert (await outcome_of(work)).text == "told"


async def test_a_cancel_ends_the_threads_of_the_author_s_too(serve):
    begun, told = threading.Barrier(3), []

    def worker(turn):
        begun.wait(DEADLINE)
        try:
            while True:
                turn.say(".")
        except asyncio.CancelledError:
            told.append("worker")

    def work(turn):
        threads = [threading.Thread(target=worker, args=(turn,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait(DEADLINE)
        for thread in threads:
            thread.join(DEADLINE)
        turn.say("never")

    async with serve(agent_with(work)) as editor:
        session = await editor.open()
        prompt = asyncio.ensure_future(editor.prompt(session, "go"))
        await editor.heard(v1.AgentMessageChunk)
        await editor.notify(v1.CancelNotification(session))
        assert (await prompt).stop_reason == "cancelled"
        assert "never" not in editor.text
    assert told == ["worker", "worker"]


async def test_a_thread_whose_call_ends_just_before_the_cancel_is_told_at_its_next_call():
    portal, told = AuthorThread(), []

    async def end_with_the_cancel():
        turn.cancel()

    def worker():
        portal.wait(end_with_the_cancel)
        for _ in range(2):
            try:
                portal.wait(functools.partial(asyncio.sleep, 0))
            except asyncio.CancelledError:
                told.append("cancelled")

    def work():
        thread = threading.Thread(target=worker)
        thread.start()
        thread.join(DEADLINE)

    turn = asyncio.ensure_future(portal.run(work, "work"))
    await turn
    assert told == ["cancelled"]


async def test_a_thread_whose_call_is_cancelled_before_it_begins_is_told():
    portal, told = AuthorThread(), []

    def worker():
        try:
            portal.wait(functools.partial(asyncio.sleep, DEADLINE))
        except asyncio.CancelledError:
            told.append("cancelled")

    loop = asyncio.get_running_loop()
    thread = threading.Thread(target=worker)
    loop.set_task_factory(lambda loop, coroutine, **options: cancelled(asyncio.Task(coroutine, loop=loop, **options)))
    try:
        await asyncio.to_thread(lambda: (thread.start(), thread.join(DEADLINE)))
    finally:
        loop.set_task_factory(None)
    assert told == ["cancelled"]


def cancelled(task):
    task.cancel()
    return task


async def test_work_between_turns_is_a_plain_function_too(serve):
    def work(turn):
        turn.session.start(report, turn.session)

    def report(session):
        with session.work() as turn:
            turn.say("The tests have passed.")

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        await editor.heard(v1.AgentMessageChunk)
        assert editor.text == "The tests have passed."


async def test_an_event_loop_is_told_that_it_cannot_use_a_plain_turn(caplog):
    kept = []

    def work(turn):
        kept.append(turn)
        turn.say("kept")

    agent = agent_with(work)
    async with accord.connect(agent) as remote:
        await (await remote.new_session("/")).prompt("go")
        with pytest.raises(RuntimeError, match="was called in the event loop"):
            kept[0].say("no")
        with pytest.raises(RuntimeError, match="this turn is over"):
            await asyncio.to_thread(kept[0].say, "no")


# Mistakes


async def test_an_error_has_the_author_s_frames(caplog):
    def work(turn):
        inner(turn)

    def inner(turn):
        turn.say(5)

    with pytest.raises(PeerError, match="Internal error"):
        await outcome_of(work)
    assert "inner(turn)" in caplog.text
    assert "turn.say(5)" in caplog.text
    assert "turn.say() takes text or a content block, got int 5" in caplog.text
    assert "author_thread.py" not in caplog.text


@pytest.mark.parametrize("error", [StopIteration("no"), KeyError("k")], ids=repr)
async def test_any_error_of_a_plain_function_is_an_internal_error(error, caplog):
    def work(turn):
        raise error

    with pytest.raises(PeerError, match="Internal error"):
        await outcome_of(work)
    assert "raise error" in caplog.text


def test_the_wrong_kind_of_turn_is_told_what_to_write():
    with pytest.raises(TypeError, match=r"is a plain function, .* write `turn: accord.sync.Turn`, or `async def work"):

        @Agent("wrong").on_prompt
        def work(turn: accord.Turn) -> None: ...

    with pytest.raises(TypeError, match=r"is an async function, .* write `session: accord.Session`, or `def opened"):

        @Agent("wrong").on_session
        async def opened(session: "accord.sync.Session") -> None: ...


async def test_a_plain_function_that_returns_a_coroutine_is_told_what_to_write(caplog):
    async def inner(turn):
        await turn.say("hello")

    with pytest.raises(PeerError, match="Internal error"):
        await outcome_of(lambda turn: inner(turn))
    assert "write `async def`" in caplog.text

    @functools.wraps(inner)
    def wrapper(turn):
        return inner(turn)

    assert (await outcome_of(wrapper)).text == "hello"
    assert (await outcome_of(functools.partial(inner))).text == "hello"


async def test_a_login_and_its_checks_may_block(serve):
    known, threads = [], set()
    agent = agent_with(lambda turn: turn.say("in"))

    @agent.login("account", "Account")
    def log_in(login: accord.sync.Login) -> bool:
        threads.add(threading.current_thread())
        known.append(login.method_id)
        return login.elicit("Who?", v1.ElicitationSchema({}), fallback={"name": "Ada"}).value == {"name": "Ada"}

    @agent.on_login_check
    def is_known() -> bool:
        threads.add(threading.current_thread())
        return bool(known)

    async with serve(agent) as editor:
        with suppress(PeerError):
            await editor.open()
        await editor.request(v1.AuthenticateRequest(v1.AuthMethodId("account")))
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "in"
    assert known == ["account"]
    assert threading.main_thread() not in threads
    assert len(threads) == 2
