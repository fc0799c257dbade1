"""What completion shows of a client's objects is what the documentation explains, and nothing of how they work."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

import pytest

import accord

MEMBERS = {
    "Client": "info on before on_notification on_request",
    "RemoteAgent": """
        peer version info name meta capabilities auth_methods open_sessions login login_method logout
        auth_status new_session options load resume watch sessions delete archive unarchive status set_title
        providers set_provider disable_provider suggestions
        request notify request_raw notify_raw on closed close kill stderr_tail extension
    """,
    "RemoteSession": """
        id cwd roots state meta agent program is_open prompt is_busy idle cancel cancel_tool_call cancel_terminal
        updates subagents on_change on extension tool_call fold markdown close_questions
        set_mode set_model set_config set_title fork close
    """,
    "RemoteSubagent": """
        id parent_id agent program cwd roots title description reported_cwd status stop_reason error usage state
        text subagents updates on_change tool_call fold markdown can_cancel cancel
    """,
    "Reply": "prompt idempotency_key inserted wire with_subagents text iter_text changes done cancelled cancel "
    "request_cancel",
}


@pytest.fixture
async def objects():
    """One live object of each class."""
    agent, client = accord.Agent("quiet"), accord.Client()

    @agent.on_prompt
    async def delegate(turn: accord.Turn) -> None:
        async with turn.subagent("Look"):
            pass

    async with accord.connect(agent, client, unstable=True) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("go")
        await reply
        (subagent,) = session.subagents.values()
        found = {"Client": client, "RemoteAgent": remote, "RemoteSession": session, "Reply": reply}
        return found | {"RemoteSubagent": subagent}


@pytest.mark.parametrize("name", MEMBERS)
async def test_an_object_of_a_client_shows_these_members_and_no_others(objects, name):
    shown = {member for member in dir(objects[name]) if not member.startswith("_")}
    assert shown == set(MEMBERS[name].split())


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_of_a_clients_objects_has_a_docstring(name):
    cls = getattr(accord, name)
    explained = {member for member, value in vars(cls).items() if inspect.getdoc(value)}
    explained |= explained_attributes(cls.__init__)
    assert set(MEMBERS[name].split()) - explained == set()


def explained_attributes(function) -> set[str]:
    """The attributes that `__init__` sets with a string below that explains them."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return {
        target.attr
        for node, below in pairwise(tree.body)
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
        if isinstance(target, ast.Attribute)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def test_a_client_without_a_name_tells_agents_the_version_of_accord():
    assert accord.Client().info == accord.v1.Implementation("accord", accord.__version__)
    assert accord.Client("mine").info == accord.v1.Implementation("mine", "0")
    assert accord.Client("mine", version="3").info == accord.v1.Implementation("mine", "3")
