"""The conventions of claude-agent-acp 0.100 and codex-acp 2.6, from lines that they sent (`recorded.jsonl`)."""

import json
from functools import cache
from pathlib import Path

import pytest

import accord
from accord import v1, v2
from accord.extensions import (
    AsyncTask,
    AsyncTasks,
    BackgroundSubagents,
    CommandTitles,
    DiffPatches,
    DisplayTerminals,
    Goals,
    NativeSubagents,
    RateLimits,
    RewindFiles,
    SessionFailures,
    SessionIndex,
    SessionListChanges,
    Steering,
    notice_of,
)
from accord.schema import codec
from accord.services.file_service import RewindFilesRequest
from accord.session import updates

CLAUDE, CODEX = "claude-agent-acp", "codex-acp"
AIR = [
    AsyncTasks,
    BackgroundSubagents,
    CommandTitles,
    DiffPatches,
    Goals,
    NativeSubagents,
    SessionFailures,
    SessionIndex,
]
both = pytest.mark.parametrize("name", [CLAUDE, CODEX])


@cache
def recorded(name):
    """What one agent sent, by what it is about."""
    lines = map(json.loads, (Path(__file__).parent / "recorded.jsonl").read_text().splitlines())
    return {it["what"]: it["frame"] for it in lines if it["agent"] == name}


def recorded_agent(name, *, with_goals=True):
    """An agent that says of itself what the real one does, and sends what a prompt names; and the requests it got."""
    agent, requests = accord.Agent(name), []
    said = recorded(name)

    @agent.on(v1.InitializeRequest)
    def answer(request: v1.InitializeRequest) -> v1.InitializeResponse:
        requests.append(request)
        return v1.InitializeResponse(1, meta=said["initialize"]["result"]["_meta"])

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for what in turn.text.split(", "):
            if what == "failed turn":
                turn.answer_meta.update(said[what]["result"]["_meta"])
            else:
                update = said[what]["params"]["update"]
                await turn.client.notify_raw("session/update", {"sessionId": turn.session.id, "update": update})

    for method in ("_session/goal", "_session/async_task/stop", "_session/steering", "_session/batch_get"):

        @agent.on_request(method)
        async def control(params, context, method=method):
            requests.append((method, params))
            answers = {"_session/async_task/stop": {"stopped": True}, "_session/steering": {"outcome": "injected"}}
            return said["rows"]["result"] if method == "_session/batch_get" else answers.get(method, {})

    return agent, requests


async def after(name, what, *extensions):
    """A session after the agent has sent this, with these extensions; its outcome, and its state."""
    agent, _ = recorded_agent(name)
    async with accord.connect(agent, accord.Client(extensions=[*AIR, *extensions])) as remote:
        session = await remote.new_session("/")
        outcome = await session.prompt(what)
        return session, outcome


@both
async def test_a_client_declares_the_words_of_jetbrains_and_reads_those_of_the_agent(name):
    agent, requests = recorded_agent(name)
    async with accord.connect(agent, accord.Client(extensions=AIR)) as remote:
        declared = requests[0].client_capabilities.meta["jetbrains"]["air"]
        assert declared["version"] == 1
        assert sorted(declared["capabilities"]) == sorted(it.word for it in AIR if it.word is not None)
        for extension in AIR:
            has_it = extension is not BackgroundSubagents or name == CLAUDE
            assert remote.capabilities.has(extension) is has_it, extension
        assert remote.extension(Steering).offer is not None


async def test_an_agent_without_the_conventions_offers_none_of_them():
    agent = accord.Agent("plain")
    agent.on_prompt(lambda _: None)
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        for extension in (*AIR, Steering):
            assert session.extension(extension).offer is None
        with pytest.raises(accord.CapabilityMissing, match=r"'asyncTasks' in _meta.jetbrains.air.capabilities"):
            await session.extension(AsyncTasks).stop("t")
        with pytest.raises(accord.CapabilityMissing, match=r"'set' in the actions of _meta.jetbrains.air.goal"):
            await session.extension(Goals).set("ship it")


@both
async def test_a_task_in_the_background_begins_and_ends(name):
    session, _ = await after(name, "async_task_spawned")
    (task,) = session.extension(AsyncTasks).tasks.values()
    assert (task.type, task.state, task.is_open, task.can_stop) == ("shell", "running", True, True)
    assert session.extension(AsyncTasks).summary == task.name
    session, _ = await after(name, "async_task_spawned, async_task_state_update")
    (task,) = session.extension(AsyncTasks).tasks.values()
    assert (task.state, task.is_open, session.extension(AsyncTasks).summary) == ("stopped", False, None)


async def test_a_task_in_the_background_is_stopped_by_its_id():
    agent, requests = recorded_agent(CODEX)
    async with accord.connect(agent, accord.Client(extensions=AIR)) as remote:
        session = await remote.new_session("/")
        assert await session.extension(AsyncTasks).stop("t")
        assert requests[1:] == [("_session/async_task/stop", {"sessionId": session.id, "asyncTaskId": "t"})]


async def test_the_report_of_a_task_adds_to_what_is_known():
    session, _ = await after(CLAUDE, "async_task_progress, async_task_spawned, async_task_progress")
    (task,) = session.extension(AsyncTasks).tasks.values()
    assert isinstance(task, AsyncTask)
    assert task.output_file_path.endswith("bpqg4aefa.output")
    assert task.description == "Wait long"


async def test_a_failure_that_the_agent_tries_to_mend_is_a_warning():
    session, _ = await after(CLAUDE, "failure")
    (failure,) = session.extension(SessionFailures).failures.values()
    assert (failure.category, failure.severity) == ("limit", "warning")
    notice = notice_of([SessionFailures], updates.SessionInfoUpdate(meta=session.state.meta))
    assert (notice.severity, notice.title) == ("warning", "Retrying Claude, attempt 1 of 10.")


async def test_a_failure_that_ends_a_turn_is_in_its_answer():
    _, outcome = await after(CODEX, "failed turn")
    failure = SessionFailures.failure.of(outcome)
    assert (failure.category, failure.severity, failure.actions) == ("limit", "error", ["retry"])
    notice = notice_of([SessionFailures], outcome)
    assert (notice.severity, notice.description) == ("error", "You can: try again")


async def test_an_older_report_of_a_failure_does_not_replace_a_newer_one():
    failures = SessionFailures()
    for revision in (2, 1):
        said = {"id": "f", "title": f"revision {revision}", "revision": revision}
        failures.fold(updates.SessionInfoUpdate(meta={"jetbrains": {"air": {"sessionFailure": said}}}))
    assert failures.failures["f"].title == "revision 2"


async def test_a_subagent_of_the_first_proposal_is_one_of_the_protocol():
    session, _ = await after(CLAUDE, "subagent_spawned")
    (subagent,) = session.state.subagents.values()
    assert (subagent.title, subagent.description) == ("Look around", "say hi")
    assert isinstance(subagent.state, updates.RunningStateUpdate)
    session, _ = await after(CLAUDE, "subagent_spawned, subagent_state_update")
    (subagent,) = session.state.subagents.values()
    assert subagent.state == updates.IdleStateUpdate("end_turn")
    assert session.state.unknown == []


async def test_a_command_has_what_it_is_for_as_its_title():
    session, _ = await after(CLAUDE, "terminal terminal_info, title tool_call_update")
    (call,) = session.state.tool_calls.values()
    assert (call.title, call.raw_input["command"]) == ("Say hi to all", "echo hi; sleep 1")


async def test_a_question_for_permission_keeps_the_command_as_its_title():
    meta = CommandTitles.title.meta("Say hi")
    assert CommandTitles.translate(v1.ToolCallUpdate(v1.ToolCallId("c"), "echo hi", meta=meta)) is None
    (shown,) = CommandTitles.translate(v1.ToolCallProgress(v1.ToolCallId("c"), "echo hi", meta=meta))
    assert shown.title == "Say hi"


async def test_a_git_patch_is_a_diff_of_the_protocol():
    session, _ = await after(CODEX, "diff tool_call")
    (call,) = session.state.tool_calls.values()
    (diff,) = call.content
    assert isinstance(diff, updates.Diff)
    assert diff.changes == [updates.DiffAdd("/home/me/work/new.txt", "text")]
    assert diff.patch.format == "git_patch"
    assert "+a" in diff.patch.text


async def test_a_git_patch_in_a_question_for_permission_is_a_diff_of_the_protocol():
    agent, seen = accord.Agent("asks"), []
    params = recorded(CLAUDE)["diff question"]["params"]

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.client.request_raw("session/request_permission", {**params, "sessionId": turn.session.id})

    def look(question: accord.PermissionQuestion) -> bool:
        seen.extend(question.tool_call.content)
        return True

    async with accord.connect(agent, accord.Client(permissions=look, extensions=AIR)) as remote:
        await (await remote.new_session("/")).prompt("go")
    assert [type(it) for it in seen] == [updates.Diff]


@both
async def test_a_goal_is_known_until_the_agent_says_that_it_is_gone(name):
    session, _ = await after(name, "goal")
    goals = session.extension(Goals)
    assert (goals.goal.objective, goals.goal.status, goals.summary) == ("Ship it", "active", "Ship it (active)")
    session, _ = await after(name, "goal, failure" if name == CLAUDE else "goal")
    assert session.extension(Goals).goal is not None
    session, _ = await after(name, "goal, goal gone")
    assert (session.extension(Goals).goal, session.extension(Goals).summary) == (None, None)


@both
async def test_a_goal_is_set_and_controlled_where_the_agent_offers_it(name):
    agent, requests = recorded_agent(name)
    async with accord.connect(agent, accord.Client(extensions=AIR)) as remote:
        session = await remote.new_session("/")
        goals = session.extension(Goals)
        await goals.set("ship it")
        await goals.clear()
        if name == CODEX:
            await goals.pause()
            await goals.resume()
        else:
            with pytest.raises(accord.CapabilityMissing):
                await goals.pause()
        with pytest.raises(ValueError, match="not empty"):
            await goals.set(" ")
    asked = [params["action"] for method, params in requests[1:]]
    assert asked == (["set", "clear", "pause", "resume"] if name == CODEX else ["set", "clear"])
    assert requests[1][1] == {"sessionId": session.id, "action": "set", "objective": "ship it"}


def test_the_older_place_of_a_goal_is_read():
    offer = Goals.declared_in({"goal": {"version": 1, "actions": ["clear", 7, "set"]}})
    assert offer.actions == ["clear", "set"]
    assert Goals.goal_in({"goal": {"objective": "ship it", "status": "active"}}).objective == "ship it"
    for none in ({"goal": "ship it"}, {"goal": None}, {"goal": {"objective": ""}}, {}, None):
        assert Goals.goal_in(none) is None


@both
async def test_rows_of_the_list_of_sessions_have_their_details(name):
    agent, requests = recorded_agent(name)
    async with accord.connect(agent, accord.Client(extensions=AIR)) as remote:
        (row,) = await remote.extension(SessionIndex).get("a", "b")
        assert requests[1:] == [("_session/batch_get", {"sessionIds": ["a", "b"]})]
    assert (row.cwd, row.details.archived) == ("/home/me/work", False)
    assert row.details.last_prompt_at.startswith("2026-11-27T19:1")


@both
async def test_changes_of_the_list_reach_the_handler_of_the_client(name):
    agent, client, seen = accord.Agent("lists"), accord.Client(extensions=AIR), []
    client.on(SessionListChanges)(seen.append)

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.client.notify_raw("_session/list/changes", recorded(name)["changes"]["params"])

    async with accord.connect(agent, client) as remote:
        await (await remote.new_session("/")).prompt("go")
    assert [row.cwd for row in seen[0].sessions] == ["/home/me/work"]


def test_the_options_of_a_list_are_in_its_meta():
    assert SessionIndex.options(5, archived="all") == {
        "jetbrains": {"air": {"version": 1, "list": {"limit": 5, "archived": "all"}}}
    }


@both
async def test_a_command_of_the_agent_is_shown_as_a_terminal(name):
    session, _ = await after(
        name, "terminal terminal_info, terminal terminal_output, terminal terminal_exit", DisplayTerminals
    )
    (call,) = session.state.tool_calls.values()
    (content,) = call.content
    terminal = session.extension(DisplayTerminals)[content.terminal_id]
    assert (terminal.text.strip(), terminal.exit_code, terminal.has_ended) == ("hi", 0, True)


def test_display_terminals_keep_the_end_of_long_outputs():
    from accord.extensions import adapter_conventions

    terminals = DisplayTerminals()

    def say(**meta):
        return terminals.fold(v1.ToolCallProgress(v1.ToolCallId("c"), meta=meta))

    say(terminal_info={"terminal_id": "t", "cwd": "/p"})
    say(terminal_output_delta={"terminal_id": "t", "data": "one "})
    say(terminal_output_delta={"terminal_id": "t", "data": "two"})
    assert (terminals["t"].text, terminals["t"].cwd, terminals["t"].has_ended) == ("one two", "/p", False)
    say(terminal_output={"terminal_id": "t", "data": "all"}, terminal_exit={"terminal_id": "t", "exit_code": 1})
    assert (terminals["t"].text, terminals["t"].exit_code, terminals["t"].has_ended) == ("all", 1, True)
    for _ in range(30):
        say(terminal_output_delta={"terminal_id": "t", "data": "x" * 100_000})
    assert len(terminals["t"].text) <= 2 * adapter_conventions.OUTPUT_LIMIT
    assert terminals["t"].forgotten > 0


@pytest.mark.parametrize(
    "meta", [{"terminal_info": "t"}, {"terminal_output": {"terminal_id": 3}}, {"terminal_exit": {}}]
)
def test_a_display_terminal_of_another_shape_is_ignored(meta):
    terminals = DisplayTerminals()
    assert terminals.fold(v1.ToolCallProgress(v1.ToolCallId("c"), meta=meta)) == []
    assert len(terminals) == 0


def test_a_client_declares_display_terminals_with_a_plain_true():
    assert DisplayTerminals.declaration({}) == {"terminal_output": True}


def steering_agent(outcome):
    agent, steered = accord.Agent("steers", extensions=[Steering]), []

    @agent.on_request("_session/steering")
    async def steer(params):
        steered.append(params)
        return {"outcome": outcome}

    agent.on_prompt(lambda _: None)
    return agent, steered


@pytest.mark.parametrize(
    ("said", "meant"),
    [("injected", "injected"), ("promptRequired", "promptRequired"), ("new word", "failed"), (None, "failed")],
)
async def test_a_message_is_sent_into_the_running_turn(said, meant):
    agent, steered = steering_agent(said)
    async with accord.connect(agent) as remote:
        assert remote.meta["steering"] == {"supported": True}
        session = await remote.new_session("/")
        assert await session.extension(Steering).steer("the other file") == meant
        prompt = [{"type": "text", "text": "the other file"}]
        assert steered == [{"sessionId": session.id, "prompt": prompt}]


def test_tasks_and_failures_of_version_2_are_read():
    said = [recorded(CODEX)[f"version 2: {it}"]["params"] for it in ("_async_task_spawned", "failed turn")]
    task, failed = (codec.convert(it, v2.UpdateSessionNotification).update for it in said)
    tasks, failures = AsyncTasks(), SessionFailures()
    tasks.fold(task)
    assert [(it.name, it.state) for it in tasks.tasks.values()] == [("sleep 600", "running")]
    failures.fold(failed)
    assert [(it.category, it.actions) for it in failures.failures.values()] == [("limit", ["retry"])]


async def test_a_rate_limit_is_a_notice_when_it_is_nearly_or_wholly_used():
    session, _ = await after(CLAUDE, "rate limit", RateLimits)
    words = "five hour, 82% used, begins again at 2026-11-28 04:01 UTC"
    limits = session.extension(RateLimits)
    assert (limits.summary, limits.limits["five_hour"].utilization) == (words, 0.82)
    update = updates.UsageUpdate(1, 10, meta=recorded(CLAUDE)["rate limit"]["params"]["update"]["_meta"])
    assert notice_of([RateLimits], update) == updates.Notice("warning", "A rate limit is nearly reached", words)
    rejected = updates.UsageUpdate(1, 10, meta={"_claude/rateLimit": {"status": "rejected"}})
    assert notice_of([RateLimits], rejected).severity == "error"
    allowed = updates.UsageUpdate(1, 10, meta={"_claude/rateLimit": {"status": "allowed"}})
    assert notice_of([RateLimits], allowed) is None
    assert notice_of([RateLimits], updates.UsageUpdate(1, 10, meta={"_claude/rateLimit": 7})) is None


def writing_agent(local=False):
    agent = accord.Agent("writes", unstable=True, local=local)

    @agent.on_prompt
    async def write(turn: accord.Turn) -> None:
        name, _, text = turn.text.partition(" ")
        await turn.files.write(name, text)
        await turn.say("written")

    return agent


@pytest.mark.parametrize(("version", "local"), [(1, False), (2, False), (1, True)])
async def test_an_agent_restores_what_it_wrote_itself_since_a_cursor(tmp_path, version, local):
    async with accord.connect(writing_agent(local), unstable=True, versions=(version,)) as remote:
        session = await remote.new_session(tmp_path)
        for text in ("a.txt one", "a.txt two", "b.txt new", "c.txt new"):
            await session.prompt(text)
        (tmp_path / "c.txt").write_text("by the user")
        first = next(it.id for it in session.state.messages if it.speaker == "agent")
        cursor = session.state.cursor_at(first)
        done = await session.extension(RewindFiles).rewind(cursor.id)
        assert (done.restored, done.left) == (
            [str(tmp_path / it) for it in ("a.txt", "b.txt")],
            [str(tmp_path / "c.txt")],
        )
        assert (tmp_path / "a.txt").read_text() == "one"
        assert not (tmp_path / "b.txt").exists()
        assert (tmp_path / "c.txt").read_text() == "by the user"
        done = await session.extension(RewindFiles).rewind(cursor.id, overwrite=True)
        assert (done.restored, done.left) == ([str(tmp_path / "c.txt")], [])
        fork = await session.fork(at=first)
        done = await fork.extension(RewindFiles).rewind()  # what the session before wrote is known in the fork
        assert done.restored == [str(tmp_path / "a.txt")]
        assert list(tmp_path.iterdir()) == []


async def test_files_are_restored_at_known_cursors_and_sessions_only(tmp_path):
    async with accord.connect(writing_agent(), unstable=True) as remote:
        session = await remote.new_session(tmp_path)
        await session.prompt("a.txt one")
        with pytest.raises(accord.PeerError, match="no such cursor"):
            await session.extension(RewindFiles).rewind("agent-none")
        with pytest.raises(accord.PeerError):
            await remote.request(RewindFilesRequest("none"))
        with pytest.raises(accord.PeerError) as refused:
            await remote.request_raw("_accord/rewind_files", {"cursorId": 3})
        assert refused.value.code == -32602
        assert (tmp_path / "a.txt").read_text() == "one"


async def test_another_agent_says_that_it_restores_no_files():
    agent, _ = steering_agent("injected")

    @agent.on_request("_accord/rewind_files")
    async def refuse(params):
        raise accord.RequestError.method_not_found("_accord/rewind_files")

    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        assert await session.extension(RewindFiles).rewind() is None
