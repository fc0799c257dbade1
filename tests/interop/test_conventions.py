"""The conventions of claude-agent-acp and codex-acp with the real agents: what `accord.extensions` has of them."""

import asyncio
import json
import re
import time
from contextlib import asynccontextmanager
from itertools import count

import pytest
from benchmarks.build import Unavailable
from interop.model.replies import ToolCall, words
from interop.model.server import ModelServer, Refused
from interop.real_agents import AGENTS, CLAUDE, CODEX, command, environment, installed, repository

import accord
from accord import updates
from accord.extensions import (
    AsyncTasks,
    BackgroundSubagents,
    CommandTitles,
    DiffPatches,
    DisplayTerminals,
    Goals,
    NativeSubagents,
    RateLimits,
    SessionFailures,
    SessionIndex,
    SessionListChanges,
    Steering,
)

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

SECONDS = 120
ALL = [
    AsyncTasks,
    BackgroundSubagents,
    CommandTitles,
    DiffPatches,
    DisplayTerminals,
    Goals,
    NativeSubagents,
    SessionFailures,
    SessionIndex,
]
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+a\n*** End Patch\nEOF"


def reply(asked):
    """Call the tool that the user names, once; refuse a request as a provider does that is asked too often."""
    if "REFUSE" in asked.text:
        return Refused(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}})
    wanted = re.search(r"CALL (\w+) (\{.*\})", asked.text)
    if wanted and not asked.answered:
        return iter([ToolCall(wanted[1], json.loads(wanted[2]))])
    return words("Done.")


def call(tool, **arguments):
    return f"CALL {tool} {json.dumps(arguments)}"


@asynccontextmanager
async def connected(agent, folder, version=1, *, client=None, headers=dict, **variables):
    """A session of this agent, in a folder that is a repository, with every convention."""
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    home, work = folder / "home", repository(folder / "work")
    home.mkdir()
    client = client or accord.Client("accord-interop", permissions=True, extensions=ALL)
    with ModelServer(reply=reply, headers=headers) as model:
        env = {**environment(agent, model.url, home), **variables}
        connecting = accord.connect(
            command(agent, home), client, cwd=work, env=env, inherit=False, timeout=90, versions=(version,)
        )
        async with connecting as remote, asyncio.timeout(SECONDS):
            session = await remote.new_session(work)
            if agent.mode:
                await session.set_mode(agent.mode)
            yield session


async def until(session, holds):
    """Wait for the update after which this holds."""
    changed = asyncio.Event()
    stop = session.on_change(lambda _: changed.set())
    while not holds():
        changed.clear()
        await changed.wait()
    stop()


UNDECLARED = {
    (CLAUDE.name, 1): {DisplayTerminals},
    (CLAUDE.name, 2): {DisplayTerminals, AsyncTasks, BackgroundSubagents, SessionIndex, Steering},
    (CODEX.name, 1): {DisplayTerminals, BackgroundSubagents},
    (CODEX.name, 2): {DisplayTerminals, BackgroundSubagents, DiffPatches},
}
"""What an agent does not declare in a version. It may use it all the same: terminals, and in version 2 patches."""


def agents_with(*extensions):
    """Try each agent in each version in which it declares these."""
    found = [(AGENTS[name], version) for (name, version), lacks in UNDECLARED.items() if not lacks & set(extensions)]
    return pytest.mark.parametrize(
        ("agent", "version"), found, ids=lambda it: f"v{it}" if isinstance(it, int) else it.name
    )


@agents_with()
async def test_the_agents_declare_the_conventions(agent, version, tmp_path):
    async with connected(agent, tmp_path, version) as session:
        undeclared = {it for it in (*ALL, Steering) if session.extension(it).offer is None}
        assert undeclared == UNDECLARED[agent.name, version]


@agents_with(AsyncTasks)
async def test_a_command_in_the_background_is_a_task_that_can_be_stopped(agent, version, tmp_path):
    claude = call("Bash", command="sleep 600", description="Wait long", run_in_background=True)
    asked = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    codex = call("exec_command", cmd="sleep 600", yield_time_ms=300, **asked)
    async with connected(agent, tmp_path, version) as session:
        await session.prompt(claude if agent is CLAUDE else codex)
        tasks = session.extension(AsyncTasks)
        await until(session, lambda: tasks.tasks)
        (task,) = tasks.tasks.values()
        assert (task.type, task.state, task.can_stop) == ("shell", "running", True)
        assert await tasks.stop(task.id)
        await until(session, lambda: not tasks.tasks[task.id].is_open)
        assert tasks.tasks[task.id].state == "stopped"


@agents_with(AsyncTasks)  # in version 2, claude-agent-acp offers no actions on goals either
async def test_a_goal_is_set_and_cleared(agent, version, tmp_path):
    async with connected(agent, tmp_path, version) as session:
        goals = session.extension(Goals)
        if agent is CODEX:
            await session.prompt("Say hello.")  # it keeps no session without a prompt
        await goals.set("Ship it")
        await until(session, lambda: goals.goal is not None)
        assert goals.goal.objective == "Ship it"
        await goals.clear()
        await until(session, lambda: goals.goal is None)


@agents_with(SessionFailures)
async def test_a_provider_that_refuses_is_a_failure_with_a_category(agent, version, tmp_path):
    async with connected(agent, tmp_path, version) as session:
        reply, failures = session.prompt("REFUSE"), session.extension(SessionFailures)
        if version == 2 and agent is CODEX:  # it is the end of the prompt, and in the state that says so
            with pytest.raises(accord.PeerError, match="429"):
                await reply
            (failure,) = failures.failures.values()
            assert (failure.category, failure.severity, failure.actions) == ("limit", "error", ["retry"])
        elif agent is CODEX:
            failure = SessionFailures.failure.of(await reply)
            assert (failure.category, failure.severity, failure.actions) == ("limit", "error", ["retry"])
        else:
            await until(session, lambda: failures.failures)
            failure = next(iter(failures.failures.values()))
            assert (failure.category, failure.severity) == ("limit", "warning")
            await reply.cancel()


@agents_with()
async def test_a_new_file_is_a_git_patch_and_its_command_a_display_terminal(agent, version, tmp_path):
    path = str(tmp_path / "work" / "new.txt")
    claude, codex = call("Write", file_path=path, content="a\n"), call("exec_command", cmd=PATCH)
    async with connected(agent, tmp_path, version) as session:
        seen = []
        session.on_change(
            lambda it: seen.extend(said if isinstance(said := getattr(it, "content", None), list) else ())
        )
        await session.prompt(claude if agent is CLAUDE else codex)
        diff = next(it for it in seen if isinstance(it, updates.Diff))
        assert [it.path for it in diff.changes] == [path]
        assert "+a" in diff.patch.text
        shell = call("Bash", command="echo hi", description="Say hi") if agent is CLAUDE else None
        await session.prompt(shell or call("exec_command", cmd="echo hi"))
        *_, ran = session.state.tool_calls.values()
        if agent is CLAUDE:
            assert ran.title == "Say hi"
        if version == 2:
            terminal = session.state.terminals[ran.content[0].terminal_id]
            assert (terminal.text.strip(), terminal.exit_status.exit_code) == ("hi", 0)
        else:
            terminal = session.extension(DisplayTerminals)[ran.content[0].terminal_id]
            assert (terminal.text.strip(), terminal.exit_code) == ("hi", 0)


async def test_a_subagent_is_one_of_the_protocol(tmp_path):
    async with connected(CLAUDE, tmp_path) as session:
        await session.prompt(call("Agent", description="Look around", prompt="say hi", subagent_type="general-purpose"))
        subagents = session.state.subagents.values
        await until(session, lambda: any(it.state == updates.IdleStateUpdate("end_turn") for it in subagents()))
        assert [it.title for it in subagents()] == ["Look around"]


async def test_a_turn_ends_while_its_subagent_works(tmp_path):
    wait = call("Bash", command="sleep 5", description="Wait")
    async with connected(CLAUDE, tmp_path) as session:
        options = {"subagent_type": "general-purpose", "run_in_background": True}
        await session.prompt(call("Agent", description="Wait", prompt=wait, **options))
        (subagent,) = session.state.subagents
        assert session.state.subagents[subagent].state == updates.RunningStateUpdate()
        await until(session, lambda: session.state.subagents[subagent].state == updates.IdleStateUpdate("end_turn"))


@agents_with(SessionIndex)
async def test_the_index_of_sessions_renames_and_reports(agent, version, tmp_path):
    client, changes = accord.Client("accord-interop", permissions=True, extensions=ALL), asyncio.Queue()
    client.on(SessionListChanges)(changes.put_nowait)
    async with connected(agent, tmp_path, version, client=client) as session:
        index = session.extension(SessionIndex)
        subscription = await index.subscribe(str(tmp_path / "work"))
        await session.prompt("Say hello.")
        await index.rename(session.id, "New title")
        (row,) = await index.get(session.id)
        assert (row.title, row.details.archived) == ("New title", False)
        while (change := await changes.get()).sessions[0].title != "New title":
            assert change.subscription_id == subscription


async def test_a_message_is_sent_into_the_running_turn(tmp_path):
    async with connected(CLAUDE, tmp_path) as session:
        reply = session.prompt(call("Bash", command="sleep 5", description="Wait"))
        await until(session, lambda: session.state.tool_calls)
        assert await session.extension(Steering).steer("The other file") in ("injected", "startedNewTurn")
        await reply


async def test_the_limits_of_a_subscription_come_with_the_usage(tmp_path):
    steps = count(91)
    window = "anthropic-ratelimit-unified-5h"

    def headers():  # the adapter leaves out what comes before the first usage, and what has not changed
        reset = {f"{it}-reset": str(int(time.time()) + 3600) for it in (window, window.removesuffix("-5h"))}
        used = {f"{window}-utilization": f"{next(steps) / 100}", f"{window}-surpassed-threshold": "0.9"}
        return {"anthropic-ratelimit-unified-status": "allowed_warning", **used, **reset}

    subscribed = {"CLAUDE_CODE_OAUTH_TOKEN": "x", "ANTHROPIC_API_KEY": None}
    async with connected(CLAUDE, tmp_path, headers=headers, **subscribed) as session:
        limits, notices = session.extension(RateLimits), []
        session.on_change(lambda update: notices.append(RateLimits.notice(update)))
        for _ in range(2):
            await session.prompt("Say hello.")
        await until(session, lambda: limits.limits)
        found = limits.limits["five_hour"]
        assert (found.status, found.utilization > 0.9) == ("allowed_warning", True)
        assert limits.summary.startswith("five hour, ")
        assert any(it is not None and it.title == "A rate limit is nearly reached" for it in notices)


@pytest.mark.parametrize("version", [1, 2])
async def test_codex_says_its_limits_in_words_only(version, tmp_path):
    said = {"used-percent": "92", "window-minutes": "300", "reset-at": str(int(time.time()) + 3600)}
    headers = {f"x-codex-primary-{name}": value for name, value in said.items()}
    async with connected(CODEX, tmp_path, version, headers=lambda: headers) as session:
        await session.prompt("Say hello.")
        assert "8% left" in (await session.prompt("/status")).text
        assert not session.extension(RateLimits).limits
