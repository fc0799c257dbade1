"""docs/updates.md says what the types say."""

import importlib.util
import re
from pathlib import Path

import pytest

import accord
from accord.schema.base import tag_of
from accord.schema.type_tree import node_of

ROOT = Path(__file__).parents[4]
specification = importlib.util.spec_from_file_location("update_tables", ROOT / "tools" / "update_tables.py")
update_tables = importlib.util.module_from_spec(specification)
specification.loader.exec_module(update_tables)


def test_the_page_of_updates_is_up_to_date():
    page = update_tables.PAGE.read_text()
    assert update_tables.updated(page) == page, "run python tools/update_tables.py"


def test_every_update_says_what_sends_it():
    assert set(update_tables.SENT_BY) == {tag_of(cls) for cls in update_tables.variants()}


@pytest.mark.parametrize("version", [accord.v1, accord.v2])
def test_accord_updates_has_each_update_of_either_version_as_it_is_read(version):
    for _, cls in node_of(version.SessionUpdate).variants:
        if not hasattr(cls, "as_update"):
            assert cls.__name__ in accord.updates.__all__
            assert getattr(accord.updates, cls.__name__) is not None


def test_all_fields_of_updates_but_two_have_their_names_in_camel_case_on_the_wire():
    for cls in (*update_tables.variants(), *update_tables.reached()):
        for name, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
            camel = re.sub(r"_(\w)", lambda it: it[1].upper(), name)
            assert wire == {"meta": "_meta", "config_id": "id", "group_id": "group"}.get(name, camel)


@pytest.mark.parametrize("version", [accord.v1, accord.v2])
async def test_what_is_no_update_by_itself_is_refused_with_what_to_send(version):
    refusals = []
    agent = accord.Agent("patching")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        for value in (version.ToolCallUpdate(version.ToolCallId("t"), "Look"), version.TextContent("Hi")):
            with pytest.raises(TypeError) as refused:
                await turn.send(value)
            refusals.append(str(refused.value))

    async with accord.connect(agent) as remote:
        await (await remote.new_session("/")).prompt("go")
    assert [text.endswith("; send a ToolCallProgress") for text in refusals] == [True, False]
