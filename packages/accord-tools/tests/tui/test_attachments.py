"""Files that go with a prompt, and changes that are undone part by part."""

import os
import sys

import msgspec
import pytest
from textual import events

import accord
from accord_tools.presentation.diffs import hunks, lines_of, without
from accord_tools.tui import attachments
from accord_tools.tui.attachments import clipboard_image, pasted_path
from tests.pictures.test_image import png_of
from tests.waiting import eventually

PNG = png_of(8, 2, [b"\x10\x20\x30" * 5] * 4, size=(5, 4))


def receiving(*, images=True):
    takes = accord.v1.PromptCapabilities(image=images)
    agent = accord.Agent("takes", capabilities=lambda it: msgspec.structs.replace(it, prompt_capabilities=takes))
    agent.got = []

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        agent.got.append([type(block).__name__ for block in turn.prompt])
        await turn.say("got it")

    return agent


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "my chart.png"
    path.write_bytes(PNG)
    return path


async def test_an_image_is_attached_by_a_command_and_sent_with_the_next_prompt(chat, picture):
    agent = receiving()
    async with chat(agent) as it:
        await it.send("/image my chart.png")
        await it.sees("+ my chart.png (5 x 4")
        await it.send("look")
        await it.sees("got it", "[image: image/png, 5 x 4")
        assert agent.got == [["TextContent", "ImageContent"]]
        await it.sees_no("+ my chart.png")


async def test_a_dropped_image_is_attached_and_can_be_taken_back(chat, picture):
    agent = receiving()
    async with chat(agent) as it:
        it.app.editor.post_message(events.Paste(f"'{picture}' "))
        await it.sees("+ my chart.png")
        assert it.app.editor.text == ""
        await it.press("ctrl+u")
        await it.sees_no("+ my chart.png")
        await it.send("no image")
        await it.sees("got it")
        assert agent.got == [["TextContent"]]


async def test_a_dropped_file_of_the_folder_becomes_a_mention(chat, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    async with chat(receiving()) as it:
        it.app.editor.post_message(events.Paste((tmp_path / "notes.txt").as_uri()))
        await eventually(lambda: it.app.editor.text == "@notes.txt ")


async def test_an_agent_that_takes_no_images_gets_a_link_and_the_user_is_told(chat, picture):
    agent = receiving(images=False)
    async with chat(agent) as it:
        await it.send(f"/image {picture}")
        await it.sees("takes no images")
        await it.send("look")
        await it.sees("got it")
        assert agent.got == [["TextContent", "ResourceLink"]]


async def test_a_file_that_does_not_exist_is_not_attached(chat):
    async with chat(receiving()) as it:
        await it.send("/image none.png")
        await it.sees("there is no file", "write its path after the command")
        assert it.front.attached == []


def test_a_pasted_text_is_a_path_only_if_it_names_a_file(tmp_path):
    path = tmp_path / "a b.png"
    path.write_bytes(PNG)
    written = (str(path), f"'{path}'", str(path).replace(" ", "\\ "), path.as_uri(), f"{path}\n")
    assert [pasted_path(text) for text in written] == [path] * 5
    for text in ("a b.png", f"see {path}", str(tmp_path), "it's", "", f"{path}\nand more", "/\0"):
        assert pasted_path(text) is None


@pytest.mark.skipif(os.name != "posix", reason="needs a script as a program")
def test_the_image_of_the_clipboard_is_read_by_a_program_and_kept(tmp_path, monkeypatch):
    (tmp_path / "image.png").write_bytes(PNG)
    program = [
        sys.executable,
        "-c",
        f"import sys; sys.stdout.buffer.write(open({str(tmp_path / 'image.png')!r}, 'rb').read())",
    ]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(attachments, "PROGRAMS", [["no-such-program"], program])
    assert clipboard_image().read_bytes() == PNG
    monkeypatch.setattr(attachments, "PROGRAMS", [[sys.executable, "-c", "print('text')"]])
    with pytest.raises(ValueError, match="holds no image"):
        clipboard_image()
    monkeypatch.setattr(attachments, "PROGRAMS", [["no-such-program"]])
    with pytest.raises(ValueError, match="no program here can read images"):
        clipboard_image()


OLD = "".join(f"line {number}\r\n" for number in range(40)) + "end"
NEW = OLD.replace("line 3\r", "line three\r").replace("line 30\r\n", "").replace("end", "the end")


def test_a_part_of_a_change_is_undone_to_the_byte():
    old, new = lines_of(OLD.encode()), lines_of(NEW.encode())
    parts = hunks(old, new)
    assert len(parts) == 3
    assert without(old, new, parts[0]).decode() == NEW.replace("line three", "line 3")
    for part in reversed(parts):
        new = lines_of(without(old, new, part))
    assert b"".join(new) == OLD.encode()


async def test_one_part_of_a_change_is_undone_and_the_rest_stays(chat, tmp_path):
    old = "".join(f"line {number}\n" for number in range(40))
    new = old.replace("line 3\n", "line three\n").replace("line 30\n", "line thirty\n")
    (tmp_path / "a.txt").write_text(old)
    agent = accord.Agent("writes")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.client.write_text_file(turn.session.cwd / "a.txt", new)
        await turn.say("written")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("y")
        await it.sees("written")
        await it.press("ctrl+d")
        await it.sees("part 1 of 2", "line three", "x undo part")
        await it.press("n", "x")
        await eventually(lambda: "line thirty" not in (tmp_path / "a.txt").read_text())
        assert (tmp_path / "a.txt").read_text() == old.replace("line 3\n", "line three\n")
        await it.sees("part 1 of 1", "line three")
        await it.press("x")
        await eventually(lambda: (tmp_path / "a.txt").read_text() == old)
        await it.sees("No change to review")


async def test_a_part_of_a_file_that_has_changed_since_is_not_undone(chat, tmp_path):
    (tmp_path / "a.txt").write_text(OLD.replace("\r", ""))
    agent = accord.Agent("writes")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.client.write_text_file(turn.session.cwd / "a.txt", NEW.replace("\r", ""))
        await turn.say("written")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("y")
        await it.sees("written")
        (tmp_path / "a.txt").write_text("mine")
        await it.press("ctrl+d")
        await it.sees("part 1 of")
        await it.press("x")
        await it.sees("cannot be undone")
        assert (tmp_path / "a.txt").read_text() == "mine"
