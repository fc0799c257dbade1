"""Markdown as paragraphs, whatever its length."""

from __future__ import annotations

from accord_tools.presentation.markdown import LIST_TAIL, markdown


def texts(source: str) -> list[str]:
    return [paragraph.text for paragraph in markdown(source)]


def test_each_line_of_a_code_fence_is_a_row_and_what_comes_after_it_is_not() -> None:
    assert texts("```\none\ntwo\n\nfour\n```\nafter\n") == ["one", "two", "", "four", "", "after"]
    assert texts("```\none\ntwo\n\nfour\nfi") == ["one", "two", "", "four", "fi"]


def test_a_list_of_one_long_item_is_shown_whole() -> None:
    words = "word " * LIST_TAIL
    assert "".join(texts(f"- {words}")).split() == words.split()


def test_a_long_list_keeps_all_of_its_items() -> None:
    items = [f"item {number} " + "x" * 90 for number in range(40)]
    shown = [" ".join(text.split()) for text in texts("".join(f"- {item}\n" for item in items))]
    assert [it for it in shown if it] == items
