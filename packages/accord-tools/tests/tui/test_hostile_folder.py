"""A hostile folder in the chat: nothing of git runs before the user says so, and nothing of the folder afterwards."""

import os

import pytest

import accord
from tests.project.hostile_folder import hostile
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and links of POSIX")

__all__ = ["hostile"]


def receiving():
    agent, got = accord.Agent("reads", accepts=("embedded", "image")), []

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        got.extend(turn.prompt)

    return agent, got


async def listed(it):
    await eventually(lambda: any(len(paths) for paths in it.app._paths.values()))


async def test_a_chat_lists_the_files_and_runs_nothing(chat, hostile):
    agent, got = receiving()
    async with chat(agent, folder=hostile.path) as it:
        await listed(it)
        await it.type("@ignor")
        await it.sees("ignored.txt")
        await it.send("see @notes.txt @zero.txt @pipe.png @README.md")
        await eventually(lambda: len(got) == 5)
    assert hostile.is_harmless(got)


async def test_a_diff_asks_for_trust_once_and_runs_nothing_of_the_folder(chat, hostile):
    agent, got = receiving()
    async with chat(agent, folder=hostile.path, size=(100, 30)) as it:
        await listed(it)
        await it.send("review @diff")
        await it.sees("Git has to run here. Trust", "no", "yes")
        assert got == []
        await it.press("enter")  # no
        await it.sees("git did not run, because you do not trust this folder")
        assert hostile.is_harmless()
        await it.send("review @diff")
        await it.sees("Git has to run here. Trust")
        await it.press("down", "enter")
        await eventually(lambda: len(got) == 2)
        assert "-one\n+two\n" in got[1].resource.text
        await it.send("again @diff")
        await eventually(lambda: len(got) == 4)
        # What git ignores is not offered any more.
        await eventually(lambda: not any(paths.matching("ignored.txt", 1) for paths in it.app._paths.values()))
    assert hostile.is_harmless(got)


async def test_a_picture_that_leads_out_of_the_folder_is_attached_as_a_link(chat, hostile):
    agent, got = receiving()
    async with chat(agent, folder=hostile.path, size=(120, 30)) as it:
        await it.send("/image picture.png")
        await it.sees("picture.png: it leads out of the session's folder")
        await it.send("look")
        await eventually(lambda: len(got) == 2)
    assert hostile.is_harmless(got)
    assert type(got[1]).__name__ == "ResourceLink"
