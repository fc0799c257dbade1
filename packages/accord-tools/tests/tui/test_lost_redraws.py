"""What Textual does not draw at once, because widgets are just mounted in a batch, is drawn without another event."""

import asyncio

import pytest
from textual import events

import accord
from accord_tools.tui import bars
from accord_tools.tui.widgets import TIMES, Lines
from tests.waiting import DEADLINE

"""Seconds until a redraw is lost for ever."""


def quiet():
    agent = accord.Agent("quiet")

    @agent.on_prompt
    async def prompt(turn):
        pass

    return agent


class Top:
    """The line above the conversation: what it says, and when it is drawn."""

    def __init__(self, app, monkeypatch):
        self._monkeypatch = monkeypatch
        self._app = app
        self._widget = app.query_one("#top", Lines)
        self._drawn = asyncio.Event()
        draw = self._widget.render_line

        def render_line(y):
            self._drawn.set()
            return draw(y)

        monkeypatch.setattr(self._widget, "render_line", render_line)

    def says(self, text):
        """Have the line say this from now on."""
        self._drawn.clear()
        self._monkeypatch.setattr(bars, "top", lambda *_, **__: ((text, ""),))
        self._app.mark()

    def forget(self):
        self._drawn.clear()

    @property
    def is_drawn(self):
        return self._drawn.is_set()

    async def drawn(self):
        await asyncio.wait_for(self._drawn.wait(), DEADLINE)

    async def drawn_often(self):
        """Until the changes before this are drawn as often as they have to be."""
        for _ in range(TIMES):
            self._drawn.clear()
            await self.drawn()


async def settled():
    """Let every widget handle what it was told."""
    for _ in range(100):
        await asyncio.sleep(0)


@pytest.fixture
async def top(chat, monkeypatch):
    async with chat(quiet()) as it:
        top = Top(it.app, monkeypatch)
        top.says("once")
        await top.drawn_often()
        yield it.app, top


async def test_what_changes_during_a_batch_is_drawn_soon_after_it(top):
    app, top = top
    with app.batch_update():
        top.says("twice")
        app.query_one("#top", Lines).show_row((("twice", ""),))
        await settled()
        assert not top.is_drawn
    await top.drawn()


async def test_what_is_laid_out_during_a_batch_is_drawn_soon_after_it(top):
    app, top = top
    with app.batch_update():
        top.says("twice")
        app.query_one("#top", Lines).show_row((("twice", ""),))
        await settled()
        app.screen.post_message(events.Resize(app.size, app.size))
        await settled()
        top.forget()  # it was drawn, for a terminal that never got it
    await top.drawn()
