"""Messages are handled in the order they arrived, and the caller can rely on it."""

from __future__ import annotations

import asyncio

import pytest

from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.schema import v1
from tests.interaction.staging import ask, chunk, prompt_params, result, says, tell, text_of
from tests.interaction.versions import spoken


class Seen:
    """A client's handlers for updates, whose beginnings and ends a test sees and governs."""

    def __init__(self):
        self.log = []
        self.handlers = Handlers()
        self._gates = {}
        self._changed = asyncio.Condition()

    def hold(self, text):
        """The handler of this text goes on only when it is let go."""
        self._gates[text] = asyncio.Event()

    def let_go(self, text):
        self._gates[text].set()

    async def handle(self, notification):
        text = text_of(notification)
        await self.note(f"{text}:")
        await asyncio.sleep(0)
        if text in self._gates:
            await self._gates[text].wait()
        await self.note(f":{text}")

    async def note(self, what):
        self.log.append(what)
        async with self._changed:
            self._changed.notify_all()

    async def has(self, what):
        async with self._changed:
            await self._changed.wait_for(lambda: what in self.log)


@pytest.fixture
async def seen():
    watched = Seen()
    watched.handlers.on(spoken.SessionNotification)(watched.handle)
    return watched


def prompting(peer, session="s", **options):
    return asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId(session), "go"), **options))


def three_words(handlers, stage):
    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        for word in ("one", "two", "three"):
            await context.peer.notify(chunk(word, request.session_id))
        return spoken.ended("end_turn")


# Rule 1


@pytest.mark.uvloop
async def test_a_sessions_notifications_are_handled_one_at_a_time_and_in_order(connect, seen):
    async with connect(three_words, seen.handlers) as link:
        await prompting(link.client)
    assert seen.log == ["one:", ":one", "two:", ":two", "three:", ":three"]


async def test_lanes_do_not_wait_for_each_other(connect, seen):
    seen.hold("slow")
    async with connect.as_agent(seen.handlers) as (script, _):
        script.send(says("slow", "a"), says("behind", "a"), says("quick", "b"))
        await seen.has(":quick")
        assert seen.log == ["slow:", "quick:", ":quick"]
        seen.let_go("slow")
        await seen.has(":behind")


async def test_notifications_without_a_session_have_a_lane_of_their_own(connect, seen):
    seen.hold("slow")

    @seen.handlers.on_notification("_example.com/news")
    async def news(params):
        await seen.note(params["number"])

    async with connect.as_agent(seen.handlers) as (script, _):
        script.send(says("slow"), *(tell("_example.com/news", number=number) for number in (1, 2, 3)))
        await seen.has(3)
        assert seen.log == ["slow:", 1, 2, 3]
        seen.let_go("slow")


async def test_a_def_handler_waits_its_turn_behind_an_async_one(connect, seen):
    seen.hold("slow")

    @seen.handlers.on_notification("_example.com/news")
    def news(params):
        seen.log.append("news")

    async with connect.as_agent(seen.handlers) as (script, _):
        script.send(says("slow"), tell("_example.com/news", sessionId="s"))
        await seen.has("slow:")
        await script.expect_silence()
        assert seen.log == ["slow:"]
        seen.let_go("slow")
        await seen.has(":slow")
        await script.expect_silence()
        assert seen.log == ["slow:", ":slow", "news"]


async def test_what_a_def_handler_returns_to_be_awaited_keeps_its_place(connect, seen):
    client, log = Handlers(), []

    @client.on(spoken.SessionNotification)
    def update(notification):
        text = text_of(notification)
        return later(text) if text.startswith("later") else log.append(text)

    async def later(text):
        for _ in range(5):
            await asyncio.sleep(0)
        log.append(text)

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("1"), says("later 2"), says("3"), says("later 4"), result(call, **spoken.ending()))
        await asking
        assert log == ["1", "later 2", "3", "later 4"]


async def test_nothing_is_kept_of_sessions_that_are_idle(connect, seen):
    async with connect.as_agent(seen.handlers) as (script, peer):
        script.send(*(says("x", f"session {number}") for number in range(100)), says("last", "other"))
        await seen.has(":last")
        await script.expect_silence()
        assert peer.connection._lanes.busy == {}


# Rule 2


@pytest.mark.uvloop
@pytest.mark.requirement("prompt.updates-before-answer")
async def test_when_a_prompt_returns_all_of_its_updates_have_been_seen(connect, seen):
    async with connect(three_words, seen.handlers) as link:
        for _ in range(3):
            seen.log.clear()
            await prompting(link.client)
            assert seen.log[-1] == ":three"


async def test_an_answer_waits_for_the_updates_of_its_session_before_it(connect, seen):
    seen.hold("slow")
    seen.hold("behind")
    async with connect.as_agent(seen.handlers) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("slow"), says("last"), result(call, **spoken.ending()), says("behind"))
        await seen.has("slow:")
        await script.expect_silence()
        assert not asking.done()
        seen.let_go("slow")
        await asking
        assert seen.log[:4] == ["slow:", ":slow", "last:", ":last"]
        seen.let_go("behind")


async def test_an_answer_that_is_an_error_waits_as_well(connect, seen):
    seen.hold("slow")
    async with connect.as_agent(seen.handlers) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("slow"))
        script.error(call, -32603)
        await script.expect_silence()
        assert not asking.done()
        seen.let_go("slow")
        await asyncio.wait([asking])
        assert asking.exception().code == -32603
        assert seen.log == ["slow:", ":slow"]


async def test_an_answer_does_not_wait_for_another_session(connect, seen):
    seen.hold("slow")
    async with connect.as_agent(seen.handlers) as (script, peer):
        asking = prompting(peer, "b")
        call = await script.expect("session/prompt")
        script.send(says("slow", "a"), result(call, **spoken.ending()))
        await asking
        assert seen.log == ["slow:"]
        seen.let_go("slow")


async def test_the_answer_to_a_request_without_a_session_waits_in_the_lane_without_one(connect, seen):
    seen.hold("slow")
    let_go = asyncio.Event()

    @seen.handlers.on_notification("_example.com/news")
    async def news(params):
        await let_go.wait()

    async with connect.as_agent(seen.handlers) as (script, peer):
        asking = asyncio.create_task(peer.request(spoken.NewSessionRequest(cwd="/", mcp_servers=[])))
        call = await script.expect("session/new")
        script.send(says("slow"), tell("_example.com/news"), result(call, sessionId="s"))
        await seen.has("slow:")
        await script.expect_silence()
        assert not asking.done()
        let_go.set()
        assert (await asking).session_id == "s"
        assert seen.log == ["slow:"]
        seen.let_go("slow")


async def test_a_raw_request_belongs_to_the_session_that_its_params_name(connect, seen):
    seen.hold("slow")
    async with connect.as_agent(seen.handlers) as (script, peer):
        asking = asyncio.create_task(peer.request_raw("session/prompt", prompt_params()))
        call = await script.expect("session/prompt")
        script.send(says("slow"), result(call, **spoken.ending()))
        await script.expect_silence()
        assert not asking.done()
        seen.let_go("slow")
        await asking
        assert seen.log == ["slow:", ":slow"]


def replayer(handlers, stage):
    @handlers.on(spoken.ReplayRequest)
    async def load(request, context):
        for number in range(2_500):
            await context.peer.notify(chunk(str(number), request.session_id))
        return spoken.replayed()


replayer.capabilities = v1.AgentCapabilities(load_session=True)


@pytest.mark.requirement("session.load.replay-before-answer")
@pytest.mark.parametrize("suspends", [False, True])
async def test_when_a_load_returns_all_that_was_replayed_has_been_seen(connect, suspends):
    texts = []
    client = Handlers()

    if suspends:

        @client.on(spoken.SessionNotification)
        async def update(notification):
            await asyncio.sleep(0)
            texts.append(int(text_of(notification)))
    else:

        @client.on(spoken.SessionNotification)
        def update(notification):
            texts.append(int(text_of(notification)))

    async with connect(replayer, client) as link:
        await link.client.request(spoken.replay("s"))
        assert texts == list(range(2_500))


# Rule 3


def asked_back(handlers, stage):
    """Updates make the client ask; the prompt is over only when it got its answers."""

    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        for word in ("one", "two"):
            await context.peer.notify(chunk(word))
        await stage.cue("enough")
        return spoken.ended("end_turn")

    @handlers.on_request("_example.com/more")
    async def more(params):
        return {"more": params["about"]}


@pytest.mark.uvloop
async def test_a_notification_s_handler_may_ask_and_wait_for_the_answer_in_its_own_session(connect):
    client, got = Handlers(), []

    @client.on(spoken.SessionNotification)
    async def update(notification, context):
        params = {"sessionId": "s", "about": text_of(notification)}
        answer = await context.peer.request_raw("_example.com/more", params, session_id="s")
        got.append(answer["more"])
        if len(got) == 2:
            link.cue("enough")

    async with connect(asked_back, client) as link:
        await prompting(link.client)
        assert got == ["one", "two"]


@pytest.mark.parametrize("child", [False, True])
async def test_an_answer_to_what_a_waiting_handler_asked_passes_the_notifications_before_it(connect, seen, child):
    client, got = Handlers(), []

    async def ask_more(context):
        got.append(await context.peer.request_raw("_example.com/more", {"sessionId": "s"}, session_id="s"))

    @client.on(spoken.SessionNotification)
    async def update(notification, context):
        if text_of(notification) != "curious":
            await seen.handle(notification)
        elif child:
            async with asyncio.TaskGroup() as group:
                group.create_task(ask_more(context))
        else:
            await ask_more(context)

    async with connect.as_agent(client) as (script, _):
        script.send(says("curious"), says("behind"))
        call = await script.expect("_example.com/more")
        script.send(says("further behind"), result(call, yes=True))
        await seen.has(":further behind")
        assert got == [{"yes": True}]
        assert seen.log == ["behind:", ":behind", "further behind:", ":further behind"]


async def test_an_ordinary_answer_still_waits_while_a_handler_before_it_asks(connect):
    log, client = [], Handlers()

    @client.on(spoken.SessionNotification)
    async def update(notification, context):
        if text_of(notification) == "curious":
            await context.peer.request_raw("_example.com/more", {"sessionId": "s"}, session_id="s")
        log.append(text_of(notification))

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer)
        prompt = await script.expect("session/prompt")
        script.send(says("curious"), says("last"), result(prompt, **spoken.ending()))
        more = await script.expect("_example.com/more")
        await script.expect_silence()
        assert not asking.done()
        script.answer(more)
        await asking
        assert log == ["curious", "last"]


async def test_an_answer_passes_when_the_handler_before_it_begins_to_wait_later(connect):
    """The agent answers the update's handler only when it has the file, whose reader waits behind that handler."""
    client, begin, log = Handlers(), asyncio.Event(), []

    @client.on(spoken.SessionNotification)
    async def update(notification, context):
        await begin.wait()
        log.append(await context.peer.request_raw("_example.com/from-update", {"sessionId": "s"}, session_id="s"))

    @client.on(spoken.QuestionRequest)
    async def read(request, context):
        await context.peer.request_raw("_example.com/from-read", {"sessionId": "s"}, session_id="s")
        return spoken.told("text")

    async with connect.as_agent(client) as (script, _):
        script.send(ask(spoken.question_method, 1, **spoken.question_params("s", "/f")))
        from_read = await script.expect("_example.com/from-read")
        script.send(says("x"), says("y"), result(from_read))
        await script.expect_silence()
        begin.set()
        from_update = await script.expect("_example.com/from-update")
        assert await script.expect_result(1) == spoken.telling("text")
        script.answer(from_update, {"first": True})
        script.answer(await script.expect("_example.com/from-update"), {"first": False})
        await script.expect_silence()
    assert log == [{"first": True}, {"first": False}]


def nests(handlers, stage):
    """Every request is answered by asking back, down to a depth, with an update before each."""

    @handlers.on_request("_example.com/down")
    async def down(params, context):
        return await go_down(params, context)


async def go_down(params, context):
    depth = params["depth"]
    await context.peer.notify_raw("_example.com/at", {"sessionId": "s", "depth": depth})
    if depth:
        below = {"sessionId": "s", "depth": depth - 1}
        return 1 + await context.peer.request_raw("_example.com/down", below, session_id="s")
    return 0


@pytest.mark.uvloop
async def test_requests_nest_both_ways_with_notifications_between_them(connect):
    client, depths = Handlers(), []
    client.on_request("_example.com/down")(go_down)

    @client.on_notification("_example.com/at")
    async def at(params):
        await asyncio.sleep(0)
        depths.append(params["depth"])

    async with connect(nests, client) as link:
        params = {"sessionId": "s", "depth": 20}
        assert await link.client.request_raw("_example.com/down", params, session_id="s") == 20
    assert depths == list(range(20, -1, -2))


async def test_a_lane_that_gets_nowhere_lets_its_answers_go_and_names_the_handler(connect, seen, clock, caplog):
    seen.hold("stuck")
    async with connect.as_agent(seen.handlers, limits=Limits(stuck_after=10)) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("stuck"), result(call, **spoken.ending()))
        await script.expect_silence()
        await clock.advance(9)
        assert not asking.done()
        await clock.advance(2)
        assert spoken.end_of(await asking) == "end_turn"
        assert seen.log == ["stuck:"]
        assert "session/update has not returned for 10 seconds" in caplog.text
        seen.let_go("stuck")


async def test_a_slow_lane_that_gets_on_keeps_its_answers(connect, seen, clock):
    for text in "abc":
        seen.hold(text)
    async with connect.as_agent(seen.handlers, limits=Limits(stuck_after=10)) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("a"), says("b"), says("c"), result(call, **spoken.ending()))
        await script.expect_silence()
        for text in "abc":
            await seen.has(f"{text}:")
            assert not asking.done()
            await clock.advance(6)
            seen.let_go(text)
        await asking
        assert seen.log[-1] == ":c"


# Rule 4


async def test_a_request_starts_after_the_notifications_before_it_have_started(connect, seen):
    seen.hold("slow")

    @seen.handlers.on(spoken.QuestionRequest)
    async def read(request):
        seen.log.append("read")
        return spoken.told("text")

    async with connect.as_agent(seen.handlers) as (script, _):
        script.send(says("quick"), says("slow"), ask(spoken.question_method, 1, **spoken.question_params("s", "/f")))
        assert await script.expect_result(1) == spoken.telling("text")
        assert seen.log.index("quick:") < seen.log.index("read")
        assert ":slow" not in seen.log
        seen.let_go("slow")


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_request_finds_a_long_burst_before_it_handled(connect, suspends):
    client, count = Handlers(), 0

    @client.on(spoken.SessionNotification)
    async def update(notification):
        nonlocal count
        count += 1

    def read(request):
        return spoken.told(str(count))

    async def read_async(request):
        return read(request)

    client.on(spoken.QuestionRequest)(read_async if suspends else read)
    async with connect.as_agent(client) as (script, _):
        script.send(
            *[says("x")] * 3_500,
            ask(spoken.question_method, 1, **spoken.question_params("s", "/f")),
            ask(spoken.question_method, 2, **spoken.question_params("other", "/f")),
        )
        assert await script.expect_result(1) == spoken.telling("3500")
        await script.expect_answer(2)


async def test_requests_start_in_the_order_of_their_arrival(connect, seen):
    started = []

    @seen.handlers.on(spoken.QuestionRequest)
    async def read(request):
        started.append(spoken.topic(request))
        return spoken.told("")

    @seen.handlers.on_request("_example.com/write")
    def write(params):
        started.append(params["path"])

    seen.hold("slow")
    async with connect.as_agent(seen.handlers) as (script, _):
        script.send(
            ask(spoken.question_method, 1, **spoken.question_params("s", "/1")),
            ask("_example.com/write", 2, sessionId="s", path="/2"),
            says("slow"),
            ask("_example.com/write", 3, sessionId="s", path="/3"),
            ask(spoken.question_method, 4, **spoken.question_params("t", "/4")),
            ask("_example.com/write", 5, sessionId="s", path="/5"),
        )
        answers = [await script.receive() for _ in range(5)]
        assert sorted(answer["id"] for answer in answers) == [1, 2, 3, 4, 5]
        assert started == ["/1", "/2", "/3", "/4", "/5"]
        seen.let_go("slow")


def stoppable(handlers, stage):
    """A turn that goes on until it is cancelled, and notifications that keep their lane busy for ever."""
    turns = {}

    @handlers.on(spoken.PromptRequest)
    async def prompt(request):
        stage.tell("started")
        turns[request.session_id] = asyncio.current_task()
        try:
            await stage.cue("never")
        except asyncio.CancelledError:
            stage.tell("cancelled")
            return spoken.ended("cancelled")

    @handlers.on(spoken.CancelNotification)
    def cancel(notification):
        stage.tell("cancel", known=notification.session_id in turns)
        if notification.session_id in turns:
            turns[notification.session_id].cancel()

    @handlers.on_notification("_example.com/busy")
    async def busy(params):
        stage.tell("busy")
        await stage.cue("never")


async def test_session_cancel_acts_on_arrival_and_never_waits_in_a_lane(connect):
    async with connect.as_client(stoppable) as script:
        asked = script.call("session/prompt", prompt_params())
        await script.told("started")
        script.tell("_example.com/busy", {"sessionId": "s"})
        await script.told("busy")
        script.send(
            tell("_example.com/busy", sessionId="s"),
            tell("_example.com/busy", sessionId="s"),
            tell("session/cancel", sessionId="s"),
        )
        assert await script.expect_result(asked) == spoken.ending("cancelled")


def stoppable_with_care(handlers, stage):
    stoppable(handlers, stage)
    stop = handlers.by_method["session/cancel", False][1]

    @handlers.on(spoken.CancelNotification)
    async def cancel(notification, context):
        await asyncio.sleep(0)
        await context.peer.notify(chunk("stopping", notification.session_id))
        stop(notification)


async def test_an_async_handler_of_session_cancel_acts_past_the_lane_as_well(connect):
    async with connect.as_client(stoppable_with_care) as script:
        script.tell("_example.com/busy", {"sessionId": "s"})
        await script.told("busy")
        script.send(ask("session/prompt", "p", **prompt_params()), tell("session/cancel", sessionId="s"))
        await script.expect("session/update")
        assert await script.expect_result("p") == spoken.ending("cancelled")


def stoppable_by_method(handlers, stage):
    @handlers.on_notification("session/cancel")
    async def cancel(params):
        stage.tell("cancel", session=params["sessionId"])

    @handlers.on_notification("_example.com/busy")
    async def busy(params):
        stage.tell("busy")
        await stage.cue("never")


async def test_session_cancel_acts_on_arrival_for_a_handler_without_a_class_too(connect):
    async with connect.as_client(stoppable_by_method) as script:
        script.tell("_example.com/busy", {"sessionId": "s"})
        await script.told("busy")
        script.tell("session/cancel", {"sessionId": "s"})
        assert await script.told("cancel") == {"session": "s"}


@pytest.mark.parametrize("busy", [False, True])
async def test_session_cancel_finds_the_prompt_that_came_before_it_started(connect, busy):
    async with connect.as_client(stoppable) as script:
        if busy:
            script.tell("_example.com/busy", {"sessionId": "s"})
            await script.told("busy")
        script.send(ask("session/prompt", "p", **prompt_params()), tell("session/cancel", sessionId="s"))
        assert await script.told("cancel") == {"known": True}
        assert await script.expect_result("p") == spoken.ending("cancelled")


async def test_cancel_request_acts_on_arrival_and_never_waits_in_a_lane(connect):
    async with connect.as_client(stoppable) as script:
        script.tell("_example.com/busy")
        await script.told("busy")
        script.send(
            tell("_example.com/busy", sessionId="s"),
            ask("session/prompt", "p", **prompt_params()),
            tell("$/cancel_request", requestId="p"),
        )
        assert await script.expect_result("p") == spoken.ending("cancelled")
        assert [word for word in await script.curtain() if word != "busy"] == ["started", "cancelled"]


# Rule 5


async def test_updates_behind_the_answer_to_session_new_do_not_hold_it_up(connect, seen):
    seen.hold("early")
    async with connect.as_agent(seen.handlers) as (script, peer):
        asking = asyncio.create_task(peer.request(spoken.NewSessionRequest(cwd="/", mcp_servers=[])))
        call = await script.expect("session/new")
        script.send(says("early"), result(call, sessionId="s"), says("late"))
        assert (await asking).session_id == "s"
        seen.let_go("early")
        await seen.has(":late")


# Rule 6


def announcing(handlers, stage):
    """Announces its commands behind the answer to `session/new`."""

    @handlers.on(spoken.NewSessionRequest)
    def new_session(request, context):
        context.after_response(announce, context, "s")
        context.after_response(stage.tell, "answered")
        return spoken.NewSessionResponse(session_id=spoken.SessionId("s"))

    @handlers.on(spoken.PromptRequest)
    async def prompt(request, context):
        context.after_response(announce, context, request.session_id)
        await context.peer.notify(chunk("before"))
        return spoken.ended("end_turn")

    async def announce(context, session):
        await context.peer.notify(
            spoken.SessionNotification(session, spoken.AvailableCommandsUpdate(available_commands=[]))
        )

    @handlers.on_request("_example.com/fails")
    async def fails(params, context):
        context.after_response(stage.tell, "after an error")
        raise ValueError("no")

    @handlers.on_request("_example.com/careless")
    async def careless(params, context):
        def fail():
            raise ValueError("no")

        async def fail_async():
            raise ValueError("no")

        context.after_response(fail)
        context.after_response(fail_async)
        context.after_response(stage.tell, "carried on")

    @handlers.on_request("_example.com/late")
    async def late(params, context):
        async def outlive():
            await stage.cue("answered")
            context.after_response(stage.tell, "late")

        stage.outliving = asyncio.create_task(outlive())
        return {}

    @handlers.on_notification("_example.com/note")
    def note(params, context):
        try:
            context.after_response(stage.tell, "never")
        except TypeError as error:
            stage.tell("refused", why=str(error))


@pytest.mark.requirement("commands.after-session-exists")
@pytest.mark.uvloop
async def test_what_is_sent_after_a_response_is_behind_it_on_the_wire(connect):
    async with connect.as_client(announcing) as script:
        asked = script.call("session/new", {"cwd": "/", "mcpServers": []})
        assert await script.expect_result(asked) == {"sessionId": "s"}
        update = await script.expect("session/update")
        assert update["params"]["update"]["sessionUpdate"] == "available_commands_update"
        await script.told("answered")
        asked = script.call("session/prompt", prompt_params())
        await script.expect("session/update")
        await script.expect_result(asked)
        await script.expect("session/update")


async def test_what_comes_after_a_response_comes_after_an_error_too(connect):
    async with connect.as_client(announcing) as script:
        await script.expect_error(script.call("_example.com/fails"), -32603)
        await script.told("after an error")


async def test_a_failure_after_a_response_is_logged_and_stops_nothing(connect):
    async with connect.as_client(announcing) as script:
        await script.request("_example.com/careless")
        await script.told("carried on")
        await script.expect_silence()


@pytest.mark.needs("the agent in this program")
async def test_a_function_that_fails_after_a_response_is_named_in_the_log(connect, caplog):
    async with connect.as_client(announcing) as script:
        await script.request("_example.com/careless")
        await script.told("carried on")
        await script.expect_silence()
    failed = [it for it in caplog.records if it.exc_info and isinstance(it.exc_info[1], ValueError)]
    assert len(failed) == 2


async def test_what_is_asked_for_when_the_answer_is_out_already_happens_at_once(connect):
    async with connect.as_client(announcing) as script:
        await script.request("_example.com/late")
        script.cue("answered")
        await script.told("late")


async def test_a_notification_has_no_answer_to_come_after(connect):
    async with connect.as_client(announcing) as script:
        script.tell("_example.com/note")
        assert await script.told("refused") == {
            "why": "a notification has no answer: answer, on_cancel and after_response are for requests"
        }


# Rule 7


@pytest.fixture
async def made():
    """Names of the tasks that were made since."""
    names = []
    loop = asyncio.get_running_loop()

    def factory(loop, coroutine, **options):
        names.append(coroutine.__qualname__)
        return asyncio.Task(coroutine, loop=loop, **options)

    loop.set_task_factory(factory)
    yield names
    loop.set_task_factory(None)


@pytest.mark.needs("delivery outside of tasks")
async def test_a_def_handler_is_called_where_its_message_arrives_with_no_task(connect, made):
    client, tasks = Handlers(), []

    @client.on(spoken.SessionNotification)
    def update(notification):
        tasks.append(asyncio.current_task())

    @client.on(spoken.QuestionRequest)
    def read(request):
        return spoken.told("text")

    async with connect.as_agent(client) as (script, _):
        made.clear()
        script.send(
            *[says("x")] * 10, *[ask(spoken.question_method, n, **spoken.question_params("s", "/f")) for n in range(10)]
        )
        for number in range(10):
            await script.expect_result(number)
        assert made == []
        assert tasks == [None] * 10


async def test_the_async_notifications_of_a_burst_share_one_task(connect, made):
    client, tasks, done = Handlers(), set(), asyncio.Event()

    @client.on(spoken.SessionNotification)
    async def update(notification):
        tasks.add(asyncio.current_task())
        await asyncio.sleep(0)
        if text_of(notification) == "last":
            done.set()

    async with connect.as_agent(client) as (script, _):
        made.clear()
        script.send(*[says("x")] * 100, says("last"))
        await done.wait()
        assert len(tasks) == made.count("Lane.run") == 1


async def test_timeouts_and_task_groups_work_in_every_handler(connect):
    client, log = Handlers(), []

    async def work(what):
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)
        except TimeoutError:
            log.append(f"{what} timed out")
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        log.append(f"{what} done")

    @client.on(spoken.SessionNotification)
    async def update(notification):
        await work(text_of(notification))

    @client.on(spoken.QuestionRequest)
    async def read(request):
        await work(spoken.topic(request))
        return spoken.told("")

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("a"), says("b"), result(call, **spoken.ending()))
        await asking
        assert log == ["a timed out", "a done", "b timed out", "b done"]
        await script.request(spoken.question_method, spoken.question_params("s", "/f"))
        assert log[-2:] == ["/f timed out", "/f done"]


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_handler_that_cancels_itself_does_not_cancel_the_one_behind_it(connect, suspends):
    client, log = Handlers(), []

    @client.on(spoken.SessionNotification)
    async def update(notification):
        text = text_of(notification)
        if text == "self":
            asyncio.current_task().cancel()
            if suspends:
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(0)
        log.append(text)

    async with connect.as_agent(client) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("self"), says("behind"), says("last"), result(call, **spoken.ending()))
        await asking
        assert log == ["behind", "last"] if suspends else ["self", "behind", "last"]


async def test_a_lane_that_never_suspends_lets_others_live(connect):
    client, log = Handlers(), []

    @client.on(spoken.SessionNotification)
    async def update(notification):
        log.append(text_of(notification))

    async with connect.as_agent(client) as (script, _):
        script.send(*[says("x")] * 5_000, says("last"))
        turns = 0
        while "last" not in log:
            await asyncio.sleep(0)
            turns += bool(log)
        assert turns >= 4
