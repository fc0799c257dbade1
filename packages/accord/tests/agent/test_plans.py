"""Plans with ids, as documents of text and in files, and the one plan of clients that take no more."""

from pathlib import Path

import pytest

from accord import Agent
from tests.agent.both_kinds import author_kind, of_kind  # noqa: F401 - a fixture

SEVERAL = {"plan": {}}


def agent_with(work):
    agent = Agent("plans")
    agent.on_prompt(of_kind(work))
    return agent


async def turn_of(client, text="go"):
    """The updates of a turn, and its answer."""
    asked = client.call("session/prompt", {"sessionId": client.session, "prompt": [{"type": "text", "text": text}]})
    updates = []
    while "method" in (message := await client.receive()):
        updates.append(message["params"]["update"])
    assert message["id"] == asked
    return updates, message.get("result", message.get("error"))


def step(content, status="pending"):
    return {"content": content, "priority": "medium", "status": status}


async def two_plans(turn):
    first = await turn.plan("Read", id="now")
    second = await turn.plan("Release", id="later")
    await first.done("Read")
    await second.remove()


@pytest.mark.requirement("plan.operations.only-when-advertised")
async def test_plans_with_ids_stand_beside_each_other(wire):
    async with wire(agent_with(two_plans), SEVERAL) as client:
        updates, _ = await turn_of(client)
    assert updates == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "now", "entries": [step("Read")]}},
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "later", "entries": [step("Release")]}},
        {
            "sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "now", "entries": [step("Read", "completed")]},
        },
        {"sessionUpdate": "plan_removed", "planId": "later"},
    ]


@pytest.mark.requirement("plan.operations.falls-back")
async def test_a_client_that_takes_one_plan_gets_the_steps_of_all_plans(wire):
    async with wire(agent_with(two_plans)) as client:
        updates, _ = await turn_of(client)
    assert updates == [
        {"sessionUpdate": "plan", "entries": [step("Read")]},
        {"sessionUpdate": "plan", "entries": [step("Read"), step("Release")]},
        {"sessionUpdate": "plan", "entries": [step("Read", "completed"), step("Release")]},
        {"sessionUpdate": "plan", "entries": [step("Read", "completed")]},
    ]


@pytest.fixture
def plan_file(tmp_path):
    file = tmp_path / "plan.md"
    file.write_text("# Plan\n- Build\n", "utf-8")
    return file


async def documents(turn):
    document = await turn.plan_document("# Design\n- [x] Read\n1. Write", id="design")
    await document.replace(Path(turn.text))
    await document.remove()
    await turn.plan_document("# Think first")
    await turn.plan("Read")


async def test_a_plan_can_be_markdown_as_text_or_in_a_file(wire, plan_file):
    async with wire(agent_with(documents), SEVERAL) as client:
        (markdown, file, removed, other, plain), _ = await turn_of(client, str(plan_file))
    assert markdown["plan"] == {"type": "markdown", "planId": "design", "content": "# Design\n- [x] Read\n1. Write"}
    assert file["plan"] == {
        "type": "markdown",
        "planId": "design",
        "content": "# Plan\n- Build\n",
        "path": str(plan_file),
    }
    assert removed == {"sessionUpdate": "plan_removed", "planId": "design"}
    assert other["plan"]["planId"] not in ("", "design")
    assert plain == {"sessionUpdate": "plan", "entries": [step("Read")]}


async def test_a_document_becomes_steps_for_a_client_that_takes_one_plan(wire, plan_file):
    async with wire(agent_with(documents)) as client:
        updates, _ = await turn_of(client, str(plan_file))
    assert [[(it["content"], it["status"]) for it in update["entries"]] for update in updates] == [
        [("Read", "completed"), ("Write", "pending")],
        [("Build", "pending")],
        [],
        [("Think first", "pending")],
        [("Think first", "pending"), ("Read", "pending")],
    ]


async def test_a_later_turn_changes_a_plan_by_its_id(wire):
    turns = []

    async def work(turn):
        turns.append(turn)
        await turn.plan(f"Step {len(turns)}", id="work")

    async with wire(agent_with(work)) as client:
        told = [update for _ in range(2) for update in (await turn_of(client))[0]]
    assert [[it["content"] for it in update["entries"]] for update in told if "entries" in update] == [
        ["Step 1"],
        ["Step 2"],
    ]


async def test_a_subagent_has_plans_of_its_own(wire):
    async def work(turn):
        await turn.plan("Delegate", id="plan")
        async with turn.subagent("Works") as subagent:
            await subagent.plan("Search", id="plan")

    async with wire(agent_with(work), {"subagents": {}}) as client:
        updates, _ = await turn_of(client)
    plans = [[it["content"] for it in update["entries"]] for update in updates if "entries" in update]
    assert plans == [["Delegate"], ["Search"]]


@pytest.mark.parametrize("content", [b"# Plan", ["Read"]], ids=["bytes", "list"])
async def test_a_document_is_text_or_a_path(wire, content):
    problems = []

    async def work(turn):
        try:
            await turn.plan_document(content)
        except TypeError as error:
            problems.append(str(error))

    async with wire(agent_with(work), SEVERAL) as client:
        await turn_of(client)
    assert problems[0].startswith("turn.plan_document() takes Markdown as text, or a Path, got ")
