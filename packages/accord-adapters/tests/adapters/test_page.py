"""The lists of docs/adapters.md: each adapter with its extra, and each ability with its tests."""

import re
from pathlib import Path

import pytest

from tests.adapters.conftest import FRAMEWORKS
from tests.named_tests import named

PAGE = (Path(__file__).parents[4] / "docs" / "adapters.md").read_text()
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
    "history after a restart": [
        "a_session_is_continued_after_a_restart_with_all_that_the_model_knew",
        "a_turn_is_kept_while_a_tool_runs",
        "a_session_that_is_taken_from_a_turn_goes_on_from_what_was_kept",
    ],
    "attachments": ["images_and_embedded_files_reach_the_model"],
    "the provider's errors": ["a_refusal_of_the_provider_is_told_in_its_own_words_and_the_session_goes_on"],
}
"""The tests of each ability; they run with every framework."""


def abilities():
    """The items of the list of abilities."""
    listed = PAGE.partition("(`make test-adapters`):\n\n")[2].partition("\n\n")[0]
    return [" ".join(it.split()) for it in listed.removeprefix("- ").split("\n- ")]


def test_the_page_lists_each_group_of_tests():
    assert len(abilities()) == len(ROWS)
    assert [row for row, said in zip(ROWS, abilities(), strict=True) if not said.startswith(row)] == []


@pytest.mark.parametrize("ability", ROWS)
def test_an_ability_is_tested_with_every_framework(ability):
    assert {f"{FILE}::test_{name}" for name in ROWS[ability]} <= named("adapters")


def test_the_page_names_each_module_with_its_extra():
    listed = dict(re.findall(r"^\| `accord_adapters\.(\w+)` \| `([\w-]+)` \|", PAGE, re.MULTILINE))
    assert list(listed) != []
    assert set(listed) == set(FRAMEWORKS)
    assert {name: name.replace("_", "-") for name in FRAMEWORKS if name != "chat"} | {"chat": "agent"} == listed
