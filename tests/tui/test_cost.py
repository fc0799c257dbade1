"""What drawing costs, counted: flushes, drawn blocks, and the work for text that grows."""

import accord
from accord.tui import markdown_blocks
from accord.tui.markdown import GrowingMarkdown
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
        assert it.transcript.text.count("word") == 5_000
        assert it.transcript.flushes - before < 500


async def test_nothing_is_drawn_while_nothing_changes(chat):
    async with chat(saying(["done"])) as it:
        await it.send("go")
        await it.idle()
        await it.pilot.pause()
        transcript = it.transcript
        before = transcript.flushes, transcript.drawn
        assert not transcript._drawing.is_asked
        await it.pilot.pause()
        assert (transcript.flushes, transcript.drawn) == before


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
    parse = markdown_blocks.parser().parse

    def counting(text):
        nonlocal seen
        seen += len(text)
        return parse(text)

    monkeypatch.setattr(markdown_blocks.parser(), "parse", counting)
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
