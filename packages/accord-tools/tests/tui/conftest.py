"""Chats without a terminal: the app with an agent in memory, driven as a user would."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

pytest.importorskip("textual")

from accord.project.git import find_repository
from accord_tools.configuration.trust import trust_folder
from accord_tools.tui.chat_app import ChatApp
from accord_tools.tui.chat_settings import ChatOptions
from accord_tools.tui.connection import AgentChoice, ConnectionOptions
from accord_tools.tui.question_bar import QUIET
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.tui.real_terminal import Terminal
from tests.waiting import DEADLINE, eventually

KEYS = {" ": "space", "/": "slash", "@": "at", ".": "full_stop", "\n": "ctrl+j", "-": "minus", "_": "underscore"}


class Clock:
    """The time of keys and clicks, which stands still unless a test moves it."""

    now = 0.0

    def __call__(self, _):
        return self.now


class Chat:
    """A running chat, as a user sees it."""

    def __init__(self, app, pilot, clock=None):
        self.app = app
        self.pilot = pilot
        self.clock = clock or Clock()

    @property
    def front(self):
        return self.app.front

    @property
    def transcript(self):
        return self.app.transcript

    def screen(self):
        """The text of the whole screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    def reading(self):
        """The text in the middle of the screen, without the scroll bar."""
        return [line[:60].rstrip() for line in self.screen().splitlines()[1:15]]

    async def type(self, text):
        """Type a text, and send nothing."""
        await self.pilot.press(*(KEYS.get(it, it) for it in text))

    async def send(self, text):
        """Type a prompt, and send it."""
        self.app.editor.set_text(text)
        await self.pilot.press("enter")

    async def press(self, *keys):
        """Press keys, once an open question takes them."""
        await self.quiet()
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def quiet(self):
        """Let half a second without keys pass, once an open question has been painted."""
        bar = self.app.bar
        await eventually(lambda: bar.keys.is_painted or self.front is None or not self.front.questions)
        self.clock.now += QUIET

    async def sees(self, *texts):
        """Wait until all of these texts are on the screen."""

        async def look():
            while not all(text in self.screen() for text in texts):
                await self.pilot.pause(0.02)

        try:
            await asyncio.wait_for(look(), DEADLINE)
        except TimeoutError:
            raise AssertionError(f"{texts} are not on the screen:\n{self.screen()}") from None

    async def sees_no(self, text):
        """Wait until this text is not on the screen any more."""

        async def look():
            while text in self.screen():
                await self.pilot.pause(0.02)

        await asyncio.wait_for(look(), DEADLINE)

    async def idle(self):
        """Wait until the agent is idle, and its words are drawn."""
        await eventually(lambda: self.front.status == "idle" and not self.front.queue)
        self.transcript.flush()
        await self.pilot.pause()


@pytest.fixture
def chat(tmp_path):
    """Start a chat: `async with chat(agent) as it`."""

    @asynccontextmanager
    async def start(agent, *, size=(80, 24), opens=True, connection=None, **options):
        choice = agent if isinstance(agent, AgentChoice) else AgentChoice("agent", lambda _: agent)
        folder = options.pop("folder", tmp_path)
        chosen = ChatOptions(folder, keeps=options.pop("keeps", False), **options)
        chosen = replace(chosen, connection=connection or ConnectionOptions())
        clock = Clock()
        app = ChatApp(choice, replace(chosen, clock=clock))
        async with app.run_test(size=size) as pilot:
            it = Chat(app, pilot, clock)
            if opens:
                await eventually(lambda: app.front is not None and app.front.session is not None)
            await pilot.pause()
            yield it

    return start


@pytest.fixture
def terminal(tmp_path):
    """Start a chat in a terminal: `terminal((80, 24), *arguments)`."""
    started = []

    def start(size, *arguments, **options):
        started.append(Terminal(tmp_path, size, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def git(folder, *arguments):
    own = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path):
    """A trusted repository with one committed file, and a changed and a new one."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 51)))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    (tmp_path / "a.txt").write_text((tmp_path / "a.txt").read_text().replace("line 7\n", "line seven\n"))
    (tmp_path / "new.txt").write_text("new\n")
    trust_folder(find_repository(tmp_path))
    return tmp_path
