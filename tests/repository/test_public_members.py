"""What completion shows of an agent's objects is what the documentation explains, and nothing of how they work."""

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest

import accord

GUIDE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()

MEMBERS = {
    "Agent": """
        info program on_prompt on_session on_config command login terminal_login environment_login on_login_check
        on_logout on_auth_status provider on_suggest on_suggestion_outcome on_document_save on_document_focus
        on before on_request on_notification session serve run
    """,
    "Session": """
        id agent program cwd roots mcp_servers meta answer_meta system_prompt state title set_title info_meta
        set_info_meta client config modes models commands
        permissions resources mcp provider resolve history tool_call fold send notice compaction on save start work
        background
    """,
    "Provider": "id supports required default replaces_login check",
    "Config": "select switch remove values set",
    "Modes": "offer current set",
    "Commands": "add remove",
    "Models": "offer current set",
    "RemoteTerminal": "id is_released output wait kill run_out",
    "Turn": """
        text prompt command arguments meta answer_meta context session client cwd
        say think say_as_user message end_message notice send plan plan_document tool subagent ask elicit elicit_url
        usage tokens provider start prompts files
    """,
    "Subagent": """
        text prompt command arguments meta answer_meta context session client cwd
        say think say_as_user message end_message notice send plan plan_document tool subagent ask elicit elicit_url
        usage tokens provider start prompts files
        id title was_cancelled retitle instruct report
    """,
    "TurnPlan": "id entries start done mark add step send remove",
    "PlanDocument": "id replace remove",
    "SentMessage": "id replace clear",
    "RunningCompaction": "id status is_shown summary fail",
    "Tool": """
        id title kind status text content diff terminal clear locations raw_input raw_output retitle ask elicit
        elicit_url start pause fail is_cancelled command
    """,
}


@pytest.fixture
async def objects():
    """One live object of each class."""
    agent = accord.Agent("shows")
    found = {"Agent": agent, "Provider": agent.provider("main", supports=["openai"])}

    @agent.on_prompt
    async def show(turn: accord.Turn) -> None:
        async with turn.tool("Look") as tool:
            session = turn.session
            terminal = session.client.terminal("true")
            found.update(Session=session, Turn=turn, Tool=tool, RemoteTerminal=terminal)
            found.update(Config=session.config, Modes=session.modes, Models=session.models)
            found.update(Commands=session.commands, RunningCompaction=session.compaction())
            found.update(TurnPlan=await turn.plan("Look"), PlanDocument=await turn.plan_document("# Look"))
            found.update(SentMessage=await turn.message("Look"))
        async with turn.subagent("Look") as subagent:
            found.update(Subagent=subagent)

    async with accord.connect(agent) as remote:
        await (await remote.new_session("/")).prompt("go")
    return found


@pytest.mark.parametrize("name", MEMBERS)
async def test_an_object_shows_these_members_and_no_others(objects, name):
    shown = {member for member in dir(objects[name]) if not member.startswith("_")}
    assert shown == set(MEMBERS[name].split())


@pytest.mark.parametrize("name", MEMBERS)
async def test_every_member_is_explained_by_a_docstring_or_the_guide(objects, name):
    explained = documented(type(objects[name])) | set(re.findall(rf"\b{name.lower()}\.(\w+)", GUIDE))
    assert set(MEMBERS[name].split()) - explained == set()


def documented(cls: type) -> set[str]:
    """The members of a class, its bases included, that have a docstring; those of attributes stand below them."""
    found: set[str] = set()
    for base in cls.__mro__[:-1]:
        found |= {name for name, member in vars(base).items() if inspect.getdoc(member)}
        if base.__module__.startswith("accord."):
            [tree] = ast.parse(inspect.getsource(base)).body
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                    found |= documented_attributes(function.body)
    return found


def documented_attributes(body: list[ast.stmt]) -> set[str]:
    return {
        target.attr
        for node, below in pairwise(body)
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
        if isinstance(target, ast.Attribute)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
