"""What drawing costs, counted: flushes, drawn blocks, and the work for text that grows."""

import asyncio
import base64
import cProfile
import io
import random
import threading

import pytest
from PIL import Image
from rich.console import Console

import accord
from accord import v1
from accord_tools.pictures.terminal_graphics import CellSize, Graphics
from accord_tools.presentation.command_output import output_lines
from accord_tools.presentation.diffs import FileDiff, unified
from accord_tools.presentation.highlight import highlighted_line
from accord_tools.presentation.markdown import GrowingMarkdown, markdown, parser
from accord_tools.tui.block import OPEN_ROWS
from accord_tools.tui.palette import Palette, all_rows
from accord_tools.tui.picture_strips import Pictures
from tests.waiting import eventually


def saying(chunks):
    agent = accord.Agent("fast")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for chunk in chunks:
            await turn.say(chunk)

    return agent


async def test_many_chunks_take_few_flushes(chat):
    async with chat(saying(["word "] * 5_000)) as it:
        before = it.transcript.flushes
        await it.send("go")
        await it.idle()
        await eventually(lambda: it.transcript.text.count("word") == 5_000)
        assert it.transcript.flushes - before < 500


async def test_nothing_is_drawn_while_nothing_changes(chat):
    async with chat(saying(["done"])) as it:
        await it.send("go")
        await it.idle()
        await it.pilot.pause()
        transcript = it.transcript
        before = transcript.flushes, transcript.drawn
        assert not transcript._drawing._timer
        await it.pilot.pause()
        assert (transcript.flushes, transcript.drawn) == before


async def test_only_rows_that_have_changed_are_drawn_and_all_after_a_scroll(chat, monkeypatch):
    async with chat(saying(["word\n\n"] * 50)) as it:
        await it.send("go")
        await it.sees_no("working")
        await it.idle()
        transcript, drawn = it.transcript, []
        refresh = transcript.refresh
        monkeypatch.setattr(
            transcript, "refresh", lambda *rows, **more: (drawn.extend(rows), refresh(*rows, **more))[1]
        )

        def draws_nothing():
            drawn.clear()
            transcript.flush()
            return not drawn

        await eventually(draws_nothing)  # what scrolled to the end may still be under way
        transcript.scroll_to(y=transcript.scroll_y - 1, animate=False, immediate=True)
        drawn.clear()  # a row may now be as it was in its place before the scroll, which another has on the screen
        transcript.flush()
        assert drawn == [transcript.size.region]
        drawn.clear()
        transcript.choose(transcript._blocks[-1])
        assert 0 < len(drawn) <= transcript.size.height


async def test_more_text_is_drawn_without_a_new_layout_of_the_screen(chat):
    async with chat(saying(["word\n\n"] * 50)) as it:
        await it.send("go")
        await it.sees_no("working")
        await it.idle()
        layouts = []
        it.app.screen.screen_layout_refresh_signal.subscribe(it.transcript, layouts.append)
        it.front.state.add(v1.AgentMessageChunk(v1.TextContent("the end\n\n" * 40)))
        it.transcript.flush()
        await it.sees("the end")
        assert not layouts
        assert it.transcript.max_scroll_y == it.transcript.scroll_y == it.transcript.vertical_scrollbar.position
        assert it.transcript.vertical_scrollbar.window_virtual_size == it.transcript.virtual_size.height


async def test_rows_that_stay_on_the_screen_are_painted_from_the_same_strips(chat):
    async with chat(saying(["word\n\n"] * 50)) as it:
        await it.send("go")
        await it.sees_no("working")
        await it.idle()
        transcript = it.transcript
        before = transcript.render_lines(transcript.size.region)
        transcript.scroll_to(y=transcript.scroll_y - 2, animate=False, immediate=True)
        after = transcript.render_lines(transcript.size.region)
        assert all(one is other for one, other in zip(before[:-2], after[2:], strict=True))


async def test_only_what_is_in_sight_is_drawn_of_a_long_session(chat):
    agent = accord.Agent("long", store=accord.MemoryStore())

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for number in range(1_000):
            async with turn.tool(f"Step {number}", kind="read") as tool:
                await tool.text("found")
        await turn.say("the end")

    async with chat(agent) as it:
        await it.send("go")
        await it.idle()
        session_id = it.front.session.id
        await it.send("/new ")
        await eventually(lambda: len(it.app.conversations) == 2 and it.front.session is not None)
        await it.press("alt+1", "ctrl+w")
        await eventually(lambda: len(it.app.conversations) == 1)
        await it.send(f"/resume {session_id}")
        await it.sees("the end")
        await it.idle()
        assert len(it.front.state) == 1_002
        assert it.transcript.drawn < 60
        it.transcript.scroll_to(y=0, animate=False, immediate=True)
        await it.sees("❯ go")
        assert it.transcript.drawn < 120


def parsed_characters(monkeypatch, chunk, count):
    """How many characters the parser of Markdown sees while a text grows by these chunks."""
    seen = 0
    parse = parser().parse

    def counting(text):
        nonlocal seen
        seen += len(text)
        return parse(text)

    monkeypatch.setattr(parser(), "parse", counting)
    growing, text = GrowingMarkdown(), "```python\n" if chunk.startswith("    ") else ""
    for _ in range(count):
        text += chunk
        growing.update(text)
    return seen


def test_the_work_for_a_chunk_does_not_grow_with_the_message(monkeypatch):
    for chunk in ("A paragraph.\n\n", "- an item of a list\n", "    code = 1\n", "one long line without an end "):
        with monkeypatch.context() as patched:
            half = parsed_characters(patched, chunk, 400)
        with monkeypatch.context() as patched:
            whole = parsed_characters(patched, chunk, 800)
        assert whole < 2.6 * half + 20_000, chunk


MOST_CALLS = 60_000
"""Calls of functions in one slice of work, C functions included: a frame of about 16 milliseconds."""

HOSTILE = {
    "images": "![" * 50_000,
    "brackets": "[" * 100_000,
    "links": "[a](b" * 20_000,
    "backticks": "`" * 100_000,
    "runs of backticks": "".join("`" * (number % 40 + 1) + "a" for number in range(5_000)),
    "emphasis": "*a_" * 33_000,
    "strong": "**a" * 33_000,
    "strikes": "~~a" * 33_000,
    "entities": "&" * 100_000,
    "HTML": "<a " * 33_000,
    "marks without width": "a" + "\u0301" * 100_000,
    "quotes": ">" * 100_000,
    "lines of quotes": ("> " * 200 + "x\n") * 250,
    "nested lists": "".join("  " * depth + "- x\n" for depth in range(300)),
    "a list": "- a\n" * 25_000,
    "a wide table": "|a" * 500 + "|\n" + "|-" * 500 + "|\n" + ("|b" * 500 + "|\n") * 100,
    "a long table": "|a|b|\n|-|-|\n" + "|c|d|\n" * 16_000,
    "a wide table of short rows": "|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "|b\n" * 9_000,
    "a wide table of words": "|a" * 30 + "|\n" + "|-" * 30 + "|\n" + "b\n" * 3_000,
    "a table of bold cells": "|**a**" * 30 + "|\n" + "|-" * 30 + "|\n" + ("|**b**" * 30 + "|\n") * 100,
    "a table of one line": "|a" * 4_000 + "|\n" + "|-" * 4_000 + "|\n",
    "a table in a quote": "> " + "|a" * 99 + "|\n> " + "|-" * 99 + "|\n" + ("> " + "|b" * 99 + "|\n") * 90,
    "bold words": ("**a** " * 12 + "\n\n") * 300,
    "a list of bold words": "- **a** *b*\n" * 2_000,
    "pluses": "a" + "+" * 100_000,
    "a list of pluses": ("- " + "+-" * 50 + "\n") * 200,
    "definitions": "[a]: b\n" * 14_000,
    "code": "```python\n" + "x = (1)\n" * 12_000 + "```\n",
    "code of many colours": "```python\n" + "x = {'a': [1, 2, 3], 'b': f'{y!r}'}  # comment\n" * 2_000 + "```\n",
    "a line of code": "```js\n" + "/" * 100_000 + "\n```\n",
    "empty lines": "\n" * 100_000 + "the end",
}


def counted(work):
    """How many functions are called by this work, and its result."""
    profile = cProfile.Profile()
    with profile:
        result = work()
    calls = sum(it.callcount for it in profile.getstats())
    return calls, result


@pytest.mark.parametrize("name", HOSTILE)
def test_no_markdown_holds_the_screen_longer_than_a_frame(name):
    """A message that comes at once is drawn in slices, each with a bound, and as many as its length needs."""
    text, growing, slices, drawn = HOSTILE[name][:20_000], GrowingMarkdown(), 0, 0
    parser()
    for language in ("python", "js"):
        highlighted_line("x", language)

    def slice_of_work():
        growing.update(text)
        return all_rows([*growing.final[drawn:], *growing.tail], 80)

    while slices == 0 or growing.is_behind:
        calls, rows = counted(slice_of_work)
        assert calls < MOST_CALLS, f"slice {slices}: {calls:,} calls for {len(rows)} rows"
        slices, drawn = slices + 1, len(growing.final)
    assert slices < 700


TABLE = "| n | name | sign |\n|--|:-:|--|\n" + "".join(
    f"| {number} | row {number} | {'x' * (number % 9)} |\n" for number in range(200)
)


@pytest.mark.parametrize("after", ["", "\n", "\nthe end\n", "# the end\n", "> the end\n", "\n" + TABLE + "\nthe end"])
@pytest.mark.parametrize("step", [9, 40, 700, 100_000])
def test_a_table_longer_than_a_slice_stays_a_table(step, after):
    """Each row has its columns, whether the table comes at once or grows, and what comes after it is no row."""
    text, growing = f"Before.\n\n{TABLE}{after}", GrowingMarkdown()
    for end in (*range(0, len(text), step), len(text)):
        growing.update(text[:end])
        while growing.is_behind:
            growing.update(text[:end])
    shown = [" ".join(paragraph.text.split()) for paragraph in [*growing.final, *growing.tail]]
    line = [it for it in shown if it and set(it) == {"─"}]
    rows = [f"{number} row {number} {'x' * (number % 9)}".strip() for number in range(200)]
    table = ["n name sign", line[0], *rows]
    tables = table if after.count("row") == 0 else [*table, "", table[0], line[-1], *rows]
    assert shown == ["Before.", "", *tables, *(["", "the end"] if "the end" in after else [])]


def test_the_columns_of_a_table_that_comes_at_once_do_not_move():
    """The first slice makes them wide enough for the rows that it sees coming."""
    rows = markdown("| a | b |\n|--|--|\n" + "| c | d |\n" * 60 + "| a longer cell | d |\n" * 60)
    assert {paragraph.text.rstrip().rindex("d") for paragraph in rows[2:]} == {len("a longer cell  ")}


def test_text_after_what_is_hostile_is_still_shown():
    for name, text in HOSTILE.items():
        growing = GrowingMarkdown()
        whole = f"{text[:20_000]}\n\nthe last words"
        growing.update(whole)
        while growing.is_behind:
            growing.update(whole)
        assert growing.tail[-1].text == "the last words", name


DIFFS = {
    "one line of a megabyte": ("x" * 1_000_000, "y" * 1_000_000),
    "lines that are all the same": ("a\n" * 20_000, "b\na\n" * 10_000),
    "few lines that come often": ("a\nb\n" * 200, "b\na\na\n" * 150),
    "words that are all the same": (("a b " * 90 + "\n") * 200, ("b a " * 90 + "\n") * 200),
}


@pytest.mark.parametrize("name", DIFFS)
def test_no_diff_holds_the_screen_longer_than_a_frame(name):
    old, new = DIFFS[name]
    calls, lines = counted(lambda: FileDiff(old, new).lines)
    assert calls < 1.3 * MOST_CALLS
    calls, _ = counted(lambda: all_rows(unified(lines[:40]), 80))
    assert calls < MOST_CALLS


OUTPUTS = {
    "colours": "\x1b[31m" * 200_000,
    "colours and letters": "\x1b[3%dma" * 100_000,
    "carriage returns": "ab\r" * 300_000,
    "lines with colours": ("\x1b[1m" + "x" * 500 + "\n") * 2_000,
    "one plain line": "x" * 1_000_000,
    "titles": "\x1b]0;" + "x" * 1_000_000,
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_output_of_a_command_holds_the_screen_longer_than_a_frame(name):
    calls, _ = counted(lambda: all_rows(output_lines(OUTPUTS[name], OPEN_ROWS), 80))
    assert calls < 1.3 * MOST_CALLS


class Unread(str):
    """Text that nothing goes through as a whole, as a key of a dictionary would."""

    __slots__ = ()

    def __hash__(self):
        raise AssertionError("all of the image was read in the event loop")


def png(image):
    written = io.BytesIO()
    image.save(written, "PNG", compress_level=1)
    return base64.b64encode(written.getvalue()).decode()


IMAGES = {
    "noise of 8 MB": lambda: png(Image.frombytes("RGB", (1_600, 1_700), random.Random(7).randbytes(1_600 * 1_700 * 3))),
    "20 million pixels": lambda: png(Image.new("1", (5_000, 4_000))),
    "damaged": lambda: png(Image.new("RGB", (64, 64)))[:-80],
    "64 MB of base64": lambda: Unread("A" * 64_000_000),
}


@pytest.mark.parametrize(
    ("name", "protocol"),
    [*((name, None) for name in IMAGES), *(("noise of 8 MB", it) for it in ("kitty", "iterm2", "sixel"))],
)
async def test_no_image_holds_the_screen_longer_than_a_frame(name, protocol):
    """A thread decodes it and makes all that the terminal is sent; the loop shows words, and then a screen of rows."""
    data, drawn, encoded = IMAGES[name](), asyncio.Event(), []
    pictures = Pictures(Graphics(protocol, CellSize(16, 16)), drawn.set)
    console, palette = Console(), Palette({})

    def screen():
        blocks = [v1.ImageContent(data, "image/png")] * 1_000
        strips = pictures.strips(blocks, 80, palette, lambda: None, is_ascii=False)
        return [strip.render(console) for strip in strips[:50]]

    thread = threading.get_ident()
    encode = base64.b64encode
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(base64, "b64encode", lambda it: encoded.append(threading.get_ident()) or encode(it))
        for _ in range(2):
            calls, rows = counted(screen)
            assert calls < MOST_CALLS
            if "drawing…" in rows[0]:
                await drawn.wait()
    assert ("▀" in rows[1]) == (name in ("noise of 8 MB", "20 million pixels"))
    assert thread not in encoded


def test_a_line_of_a_megabyte_is_not_highlighted():
    calls, spans = counted(lambda: highlighted_line("(" * 1_000_000, "python"))
    assert (len(spans), calls < 200) == (1, True)
