"""The table of docs/adapters.md: a column for each adapter, a row for each ability, and tests for both."""

import re
from pathlib import Path

import pytest

from tests.adapters.conftest import FRAMEWORKS
from tests.named_tests import named

PAGE = (Path(__file__).parents[4] / "docs" / "adapters.md").read_text()
COLUMNS = ["chat", "Pydantic AI", "LangGraph", "OpenAI Agents", "LlamaIndex", "Claude"]
FILE = "test_frameworks"
ROWS = {
    "text and thoughts stream": ["text_streams_as_the_model_says_it", "thoughts_stream_beside_the_text"],
    "tool calls: start, arguments, result, failure": [
        "a_tool_call_has_its_arguments_and_its_result",
        "a_tool_that_fails_is_shown_as_failed_and_the_model_goes_on",
    ],
    "approval as permission": ["a_tool_that_needs_approval_asks_the_user"],
    "plans": ["a_plan_is_shown_as_a_plan"],
    "usage of each request": ["usage_is_told_for_the_context_and_for_the_turn"],
    "cancel in a model call and in a tool": [
        "a_cancel_ends_a_model_call_and_the_next_turn_knows_of_the_prompt",
        "a_cancel_ends_a_tool_and_the_next_turn_works",
    ],
    "history after a restart": ["a_session_is_continued_after_a_restart_with_all_that_the_model_knew"],
    "history after a crash in a turn": [
        "a_turn_is_kept_while_a_tool_runs",
        "a_session_that_is_taken_from_a_turn_goes_on_from_what_was_kept",
    ],
    "attachments": ["images_and_embedded_files_reach_the_model"],
    "the provider's own words": ["a_refusal_of_the_provider_is_told_in_its_own_words_and_the_session_goes_on"],
    "the same conversation is the same session": ["the_same_conversation_is_the_same_session_with_each_framework"],
}
"""The tests of each row; they run with every framework."""
NOT_ALIKE = {"cost", "history after a crash in a turn"}
"""Rows in which frameworks differ."""


def table():
    """The table of abilities: its columns, and its rows by ability."""
    lines = PAGE.partition("| | chat |")[2].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return ["chat", *(cell.strip() for cell in lines[0].strip("|").split("|"))], {name: cells for name, *cells in rows}


def test_there_is_a_column_for_each_adapter():
    columns, rows = table()
    assert columns == COLUMNS
    assert len(columns) == len(FRAMEWORKS)
    assert {len(cells) for cells in rows.values()} == {len(columns)}


def test_there_is_a_row_for_each_group_of_tests():
    assert set(table()[1]) == {*ROWS, "cost"}


@pytest.mark.parametrize("ability", ROWS)
def test_a_row_says_what_its_tests_show_of_every_framework(ability):
    assert {f"{FILE}::test_{name}" for name in ROWS[ability]} <= named("adapters")
    if ability not in NOT_ALIKE:
        assert {re.sub(r" \[\d\]", "", cell) for cell in table()[1][ability]} == {"yes"}


def test_the_page_names_each_module_with_its_extra():
    listed = dict(re.findall(r"^\| `accord_adapters\.(\w+)` \| `([\w-]+)` \|", PAGE, re.MULTILINE))
    assert list(listed) != []
    assert set(listed) == set(FRAMEWORKS)
    assert {name: name.replace("_", "-") for name in FRAMEWORKS if name != "chat"} | {"chat": "agent"} == listed
