"""Plain words get a sensible answer."""

import pytest

from accord import v1
from accord_tools.demo.demo_talk import about, vocabulary


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Hello!", "I am Accord's built-in agent"),
        ("good morning", "Say `/help`"),
        ("Hello! What is a tool call?", "one thing that an agent does"),
        ("Who are you?", "no model"),
        ("What is ACP?", "Agent Client Protocol"),
        ("What's a tool call?", "one thing that an agent does"),
        ("explain modes", "way of working"),
        ("How do I cancel?", "`cancelled`"),
        ("what is the agent client protocol", "JSON-RPC"),
        ("say it again, Sam", "it again, Sam"),
        ("echo: one two", "one two"),
        ("what is 6 * 7", "42"),
        ("4 / 0", "divided by zero"),
        ("what time is it?", "It is "),
        ("thanks a lot", "You are welcome"),
        ("bye", "Goodbye"),
        ("help me", "/help"),
        ("What is my name?", "You have not told me"),
        ("colourless green ideas", "You said: colourless green ideas"),
        ("Why is the sky blue?", "You said: Why is the sky blue?"),
        ("/unknown", "You said: /unknown"),
    ],
)
async def test_plain_words_get_a_sensible_answer(visit, said, answered):
    async with visit() as session:
        assert answered in (await session.say(said)).text


@pytest.mark.parametrize(
    "said",
    ["See http://localhost:8080/acp", "See 127.0.0.1:8080", "Come at 12:30", "It was 2026-11-22", "Use v1.2-3"],
)
async def test_numbers_in_addresses_times_and_dates_are_no_sum(visit, said):
    async with visit() as session:
        assert f"You said: {said}" in (await session.say(said)).text


async def test_it_says_what_it_sees_in_the_folder(visit):
    async with visit() as session:
        assert "it is empty" in (await session.say("What do you see here?")).text
        (session.folder / "src").mkdir()
        (session.folder / "notes.txt").write_text("")
        (session.folder / ".hidden").write_text("")
        answer = (await session.say("which files are here?")).text
        assert "`src/`, `notes.txt`" in answer
        assert "hidden" not in answer


@pytest.mark.requirement("prompt.context-kept")
async def test_it_remembers_a_name_in_one_session(visit):
    async with visit() as session:
        await session.say("My name is Ada.")
        assert "Hello again, Ada!" in (await session.say("hello")).text


async def test_it_says_what_else_came_with_a_prompt(visit):
    async with visit() as session:
        answer = await session.say(
            v1.ImageContent.from_bytes(b"123456", "image/png"),
            v1.AudioContent.from_bytes(b"123", "audio/wav"),
            v1.EmbeddedResource.from_text("one\ntwo", "file:///a.txt"),
            v1.EmbeddedResource.from_bytes(b"123", "file:///b.bin"),
            v1.ResourceLink("c.txt", "file:///c.txt"),
        )
        assert answer.text.splitlines() == [
            "You sent me 6 bytes of image/png.",
            "You sent me 3 bytes of audio/wav.",
            "You sent me file:///a.txt: 2 lines, 7 characters.",
            "You sent me file:///b.bin: 3 bytes.",
            "You pointed me to c.txt (file:///c.txt).",
        ]


def test_every_other_name_stands_for_a_word_that_is_known():
    terms, names = vocabulary()["terms"], vocabulary()["names"]
    assert set(names.values()) <= set(terms)
    assert about("what are stop reasons?") == terms["stop reason"]
    assert about("the weather") is None
