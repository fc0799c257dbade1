"""Suggestions with the TypeScript SDK's frozen copy of the proposal, which validates every message."""

import asyncio
import shutil

import pytest
from benchmarks.build import Unavailable
from interop.peers import HERE, built

import accord
from accord import v1
from tests.waiting import DEADLINE

pytestmark = pytest.mark.interop


@pytest.fixture
def suggesting_agent(tmp_path):
    """The command of an agent of that SDK which suggests what it was told."""
    try:
        folder = built("typescript").folder
    except Unavailable as missing:
        pytest.skip(str(missing))
    shutil.copy(HERE / "agents" / "typescript_suggestions.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(folder / "node_modules")
    return ["node", str(tmp_path / "typescript_suggestions.mjs")]


async def test_an_agent_of_the_typescript_sdk_follows_our_client(suggesting_agent, tmp_path):
    async with accord.connect(suggesting_agent, unstable=True) as remote, remote.suggestions(tmp_path) as suggestions:
        document = await suggestions.open("a.txt", "one\n", language="plaintext")
        await document.change("one\n😀!\n")
        await document.focus(5)
        await document.save()
        history = [v1.NesEditHistoryEntry(document.uri, "new"), v1.NesEditHistoryEntry(document.uri, "old")]
        edit, jump = await document.suggest(5, context=v1.NesSuggestContext(edit_history=history))
        told = f"offers utf-32,utf-16,utf-8;start {tmp_path.as_uri()};focus 2;save"
        assert await edit.accept() == f"one\n😀[😀;1;{told}]!\n"
        assert isinstance(jump.value, v1.NesJumpSuggestion)
        await jump.reject("ignored")
        # That SDK reads a notification and the request after it side by side.
        async with asyncio.timeout(DEADLINE):
            while "reject" not in (text := (await document.suggest(0))[0].new_text or ""):
                pass
        assert text.startswith(f"[;;{told};accept s0;reject s1 ignored]one\n")
        await document.close()
