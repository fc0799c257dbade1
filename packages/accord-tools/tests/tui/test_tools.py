"""Tool calls: diffs, commands, images; folding."""

import asyncio
import base64
import threading
import zlib

from PIL import Image

import accord
from accord import v1
from accord.session import ToolCallState
from accord_tools.tui.block import Look, ToolBlock
from accord_tools.tui.connection import ConnectionOptions
from accord_tools.tui.palette import Palette
from tests.waiting import eventually


def working(work):
    agent = accord.Agent("works")

    @agent.on_prompt
    async def prompt(turn: accord.Turn) -> None:
        await work(turn)
        await turn.say("done")

    return agent


async def send(turn, update):
    await turn.client.notify(v1.SessionNotification(turn.session.id, update))


async def test_a_diff_is_shown_with_its_numbers_and_folded_when_it_is_long(chat):
    async def work(turn):
        async with turn.tool("Edit", kind="edit") as tool:
            await tool.diff("a.txt", "".join(f"{it}\n" for it in range(50)), "".join(f"new {it}\n" for it in range(50)))

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("done", "a.txt  +50 -50", "more lines")
        await it.press("ctrl+o")
        await it.idle()
        assert "more lines" not in it.transcript.text
        assert "new 49" in it.transcript.text


async def test_a_wide_terminal_shows_a_change_side_by_side(chat):
    async def work(turn):
        async with turn.tool("Edit", kind="edit") as tool:
            await tool.diff("a.txt", "one\ntwo\n", "one\n2\n")

    async with chat(working(work), size=(200, 50)) as it:
        await it.send("go")
        await it.sees("done")
        line = next(line for line in it.screen().splitlines() if "- two" in line)
        assert "+ 2" in line


async def test_what_a_reading_tool_found_is_counted_and_opens_with_a_key(chat):
    async def work(turn):
        async with turn.tool("Read a.txt", kind="read") as tool:
            await tool.text("alpha\nbeta\ngamma")

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("done", "Read a.txt", "3 lines")
        assert "beta" not in it.screen()
        await it.press("alt+up", "alt+up", "enter")
        await it.sees("beta")


async def test_a_failed_tool_shows_why(chat):
    async def work(turn):
        async with turn.tool("Build", kind="execute") as tool:
            await tool.fail("no such file: main.c")

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("✗ Build", "failed", "no such file: main.c")


async def test_a_command_that_runs_here_shows_its_output_while_it_runs_and_how_it_ended(chat):
    async def work(turn):
        command = "echo first; while [ ! -e go ]; do sleep 0.01; done; echo last; exit 3"
        async with turn.tool("Run it", kind="execute") as tool, tool.command(["sh", "-c", command]) as running:
            await running.wait()

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("y")
        await it.sees("first")
        assert "last" not in it.transcript.text.replace("echo last", "")
        (it.front.folder / "go").touch()
        await it.sees("last", "✗ Run it", "failed, exit code 3")


async def test_a_terminal_that_the_agent_shows_by_itself_grows_by_its_deltas(chat):
    """codex-acp and claude-agent-acp run commands themselves, and report them in `_meta`."""
    more = asyncio.Event()

    async def work(turn):
        call = v1.ToolCallId("c1")

        def told(**meta):
            return v1.ToolCallProgress(call, meta=meta)

        content = [v1.Terminal(v1.TerminalId("t1"))]
        info = {"terminal_info": {"terminal_id": "t1", "cwd": "/"}}
        await send(turn, v1.ToolCall(call, "make test", kind="execute", content=content, meta=info))
        await send(turn, told(terminal_output_delta={"terminal_id": "t1", "data": "one\r\n"}))
        await more.wait()
        await send(turn, told(terminal_output_delta={"terminal_id": "t1", "data": "two\r\n"}))
        await send(turn, told(terminal_exit={"terminal_id": "t1", "exit_code": 2, "signal": None}))

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("make test", "one")
        more.set()
        await it.sees("one", "two", "exit code 2")


def png(width, height):
    def chunk(name, data):
        return len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)

    header = width.to_bytes(4) + height.to_bytes(4) + bytes([8, 2, 0, 0, 0])
    rows = b"".join(b"\0" + bytes([255, 0, 0]) * width for _ in range(height))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


async def test_an_image_is_named_and_drawn_in_half_blocks(chat):
    async def work(turn):
        await turn.say(v1.ImageContent(png(8, 4), "image/png"))

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("[image: image/png, 8 x 4", "▀▀▀▀▀▀▀▀")


async def test_keys_are_answered_while_an_image_is_decoded(chat, monkeypatch):
    go_on, opening = threading.Event(), Image.open

    def slow(*arguments, **options):
        go_on.wait()
        return opening(*arguments, **options)

    monkeypatch.setattr(Image, "open", slow)

    async def work(turn):
        await turn.say(v1.ImageContent(png(8, 4), "image/png"))

    try:
        async with chat(working(work)) as it:
            await it.send("go")
            await it.sees("[image: image/png, 8 x 4", "drawing")
            await it.type("hello")
            await it.sees(" hello")
            go_on.set()
            await it.sees("▀▀▀▀▀▀▀▀")
            await it.sees_no("drawing")
    finally:
        go_on.set()


async def test_images_are_decoded_one_at_a_time_and_each_once(chat, monkeypatch):
    opened, running, most, opening = 0, 0, 0, Image.open

    def counted(*arguments, **options):
        nonlocal opened, running, most
        opened, running = opened + 1, running + 1
        most = max(most, running)
        try:
            return opening(*arguments, **options)
        finally:
            running -= 1

    monkeypatch.setattr(Image, "open", counted)

    async def work(turn):
        for number in range(30):
            await turn.say(v1.ImageContent(png(8, number + 1), "image/png"))
            await turn.say(f" {number}")

    async with chat(working(work), size=(80, 50)) as it:
        await it.send("go")
        await it.idle()
        await it.sees("… 10 more images and files")
        await it.sees_no("drawing")
        assert (opened, most) == (20, 1)


async def test_an_image_that_is_malformed_is_named(chat):
    async def work(turn):
        await turn.say(v1.ImageContent(png(8, 4)[:60], "image/png"))

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("[image: image/png", "not drawn: damaged", "done")
        assert "▀" not in it.screen()


async def test_without_colours_an_image_is_named_only(chat):
    async def work(turn):
        await turn.say(v1.ImageContent(png(8, 4), "image/png"))

    async with chat(working(work), is_coloured=False) as it:
        await it.send("go")
        await it.sees("[image: image/png, 8 x 4", "done")
        assert "▀" not in it.screen()


async def test_a_block_can_be_folded_with_a_click(chat):
    async def work(turn):
        async with turn.tool("Read a.txt", kind="read") as tool:
            await tool.text("alpha\nbeta")

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("done", "2 lines")
        row = next(number for number, line in enumerate(it.screen().splitlines()) if "Read a.txt" in line)
        await it.pilot.click(offset=(6, row))
        await it.sees("alpha")
        await eventually(lambda: "beta" in it.screen())


async def test_a_text_is_cut_until_its_block_is_opened(chat):
    async def work(turn):
        async with turn.tool("Count", kind="other") as tool:
            await tool.text("\n".join(f"number {number}" for number in range(12)))

    async with chat(working(work)) as it:
        await it.send("go")
        await it.sees("done", "Count", "number 0")
        assert "number 11" not in it.screen()
        row = next(number for number, line in enumerate(it.screen().splitlines()) if "Count" in line)
        await it.pilot.click(offset=(6, row))
        await it.sees("number 0", "number 11")


async def test_a_change_of_an_agent_of_version_2_shows_its_files_and_lines(chat):
    async def work(turn):
        async with turn.tool("Edit", kind="edit") as tool:
            await tool.diff("a.txt", "one\ntwo\n", "one\n2\n")

    async with chat(working(work), connection=ConnectionOptions(versions=(2, 1))) as it:
        await it.send("go")
        await it.sees("done", "modified a.txt", "-two", "+2")
        assert it.front.connection.remote.version == 2


def test_a_cancelled_call_looks_cancelled():
    call = ToolCallState(v1.ToolCallId("c"), "Stop it", status="cancelled")
    heading = ToolBlock(call).paragraphs(Look(Palette({}), 80))[0]
    assert (heading.first[0][0], heading.text) == (" ⊘ ", "Stop it  cancelled")
