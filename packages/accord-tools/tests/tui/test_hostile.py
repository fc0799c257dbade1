"""Text of agents that means harm, or is merely strange, keeps the layout and cannot act on the terminal."""

import pytest
from hypothesis import given, settings, strategies
from rich.cells import cell_len

import accord
from accord_tools.presentation.command_output import LONGEST, MOST, output_lines
from accord_tools.presentation.diffs import FileDiff, side_by_side, unified
from accord_tools.presentation.markdown import GrowingMarkdown, markdown
from accord_tools.presentation.styled_text import Paragraph, text_of
from accord_tools.tui.palette import Palette, all_rows, rows_of

TEXTS = {
    "controls": "a\x1b[31mred\x1b]0;title\x07\x9b2J\x00\x08b",
    "bidi": "safe \u202egnp.exe\u2066 and \u200f more",
    "wide": "日本語" * 60 + "👩‍👩‍👧‍👦" * 30,
    "marks": "e" + "\u0301" * 500,
    "long word": "x" * 5_000,
    "long line": "word " * 4_100,
    "nested": "> " * 200 + "deep\n" + "- " * 200 + "deep",
    "html": "<script>alert(1)</script> <img src=x onerror=y>\n\n<div>\nblock\n</div>",
    "table": "|" + "a|" * 200 + "\n|" + "-|" * 200 + "\n" + ("|" + "日|" * 200 + "\n") * 20,
    "fences": "````\n```\nx\n````\n~~~\n```",
    "surrogates": "half \ud83d and \ude00",
    "tabs": "\t\ta\tb\n\tc",
    "rtl": "שלום עולם " * 40,
    "link": "[https://bank.example](https://evil.example) ![x](y)",
}


def agent_saying(text):
    agent = accord.Agent("evil\x1b[2J", title="Evil \x1b]0;x\x07\u202e")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.think(text)
        async with turn.tool(text[:2_000] or "x", kind="execute", locations=["/a\x1b[2J\nb"]) as tool:
            await tool.text(text)
            await tool.diff("a\x1b[31m.py", text, text + "more")
        await turn.plan(text[:2_000] or "x")
        await turn.say(text)
        await turn.say("\n\nthe end of it")

    return agent


@pytest.mark.parametrize("name", [*TEXTS])
async def test_a_strange_text_keeps_the_layout_and_obeys_nothing(chat, name):
    text = TEXTS[name].encode("utf-8", "replace").decode() if name == "surrogates" else TEXTS[name]
    async with chat(agent_saying(text)) as it:
        await it.send("go")
        await it.sees("the end of it")
        for strip in it.app.screen._compositor.render_strips():
            assert sum(cell_len(segment.text) for segment in strip) == 80
            shown = "".join(segment.text for segment in strip)
            assert not any(ord(it) < 32 or 0x7F <= ord(it) < 0xA0 or it in "\u202e\u2066" for it in shown)
        assert "enter send" in it.screen()


@pytest.mark.parametrize("name", [*TEXTS])
@pytest.mark.parametrize("width", [8, 20, 79])
def test_no_row_is_wider_than_the_screen(name, width):
    text = TEXTS[name]
    lines = FileDiff(text, text + "\nmore").lines
    sides = side_by_side(lines, max(width, 40), cell_len)
    for paragraphs in (markdown(text), output_lines(text, 1_000), unified(lines), sides):
        if paragraphs:
            strips = Palette({}).strips(all_rows(paragraphs, max(width, 40)), max(width, 40))
            assert {strip.cell_length for strip in strips} <= {max(width, 40)}
    for paragraph in markdown(text):
        for row in rows_of(paragraph, width):
            assert cell_len(text_of(row)) <= max(width, 8) or paragraph.first


def test_raw_html_is_shown_as_text():
    shown = "\n".join(paragraph.text for paragraph in markdown(TEXTS["html"]))
    assert "<script>alert(1)</script>" in shown
    assert "<div>" in shown


def test_a_link_shows_where_it_leads():
    [paragraph] = markdown("[https://bank.example](https://evil.example)")
    assert "https://evil.example" in paragraph.text


@given(strategies.lists(strategies.text("ab \n`*_-#>|[]()~1.\t\\😀é", max_size=12), max_size=30))
@settings(max_examples=100, deadline=None)
def test_a_text_that_grows_is_drawn_like_the_whole_one(chunks):
    growing, text = GrowingMarkdown(), ""
    for chunk in chunks:
        text += chunk
        growing.update(text)
    drawn = [text_of(row) for paragraph in (*growing.final, *growing.tail) for row in rows_of(paragraph, 40)]
    whole = [text_of(row) for paragraph in markdown(text) for row in rows_of(paragraph, 40)]
    assert [line for line in drawn if line.strip()] == [line for line in whole if line.strip()]


@given(strategies.text("ab ", max_size=90), strategies.integers(1, 20), strategies.integers(0, 8))
@settings(max_examples=200, deadline=None)
def test_text_in_ascii_is_broken_where_any_other_text_is(text, width, prefix):
    """It is broken in another way, which is faster."""
    first = ((" " * prefix, ""),)
    rows, others = (
        [len(text_of(row)) for row in rows_of(Paragraph([(it, "")], first, first), width)]
        for it in (text, text.replace("a", "é").replace("b", "é"))
    )
    assert rows == others


@given(strategies.text("ab 日😀é\u0301-", max_size=60), strategies.integers(8, 30))
@settings(max_examples=100, deadline=None)
def test_wrapping_loses_no_character_but_blanks(text, width):
    rows = rows_of(Paragraph([(text, "")]), width)
    assert "".join(text_of(row) for row in rows).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(text_of(row).rstrip()) <= width for row in rows)


def test_sequences_are_obeyed_up_to_a_bound_and_later_lines_are_only_begun():
    red = "\x1b[31m".ljust(LONGEST, "x")
    obeyed = MOST // LONGEST
    lines = output_lines("\n".join([red] * (obeyed + 1)), obeyed + 1)
    assert {tuple(line.spans) for line in lines[:obeyed]} == {tuple(lines[0].spans)}
    assert lines[0].spans[0][1] == "fg:red"
    assert len(lines[-1].text) < len(lines[0].text)
    plain = output_lines("\n".join(["x" * LONGEST] * (obeyed + 1)), obeyed + 1)
    assert len(plain[obeyed - 1].text) == len(plain[0].text) > len(plain[-1].text)


def test_a_carriage_return_and_colours_of_a_command_are_shown_as_a_terminal_does():
    lines = output_lines("\x1b[31mred\x1b[0m\n 10%\r 99%\x1b[K\nab\bc\n", 10)
    assert [line.text for line in lines] == ["red", " 99%", "ac"]
    assert lines[0].spans == [("red", "fg:red")]
