"""A call that comes a little later."""

from pathlib import Path

import pytest

pytest.importorskip("textual")

from textual import _time as clock_of_textual
from textual.app import App

from accord_tools.tui import widgets
from accord_tools.tui.widgets import Debounce
from tests.waiting import eventually


async def test_it_is_made_once_however_often_it_is_asked_for():
    calls = []
    app = App()
    async with app.run_test():
        call = Debounce(app, lambda: calls.append(1))
        for _ in range(3):
            call.ask(0.0)
        await eventually(lambda: calls)
        assert calls == [1]
        call.ask(0.0)
        await eventually(lambda: calls == [1, 1])


async def test_one_that_was_cancelled_is_not_made():
    calls = []
    app = App()
    async with app.run_test() as pilot:
        call = Debounce(app, lambda: calls.append("cancelled"))
        call.ask(0.0)
        call.cancel()
        other = Debounce(app, lambda: calls.append("other"))
        other.ask(0.0)
        await eventually(lambda: calls)
        await pilot.pause()
        assert calls == ["other"]


async def test_it_is_made_although_the_process_stood_still_while_it_was_asked_for(monkeypatch):
    """Where Textual's own timer counts its only call as missed."""
    calls = []
    app = App()
    async with app.run_test():
        standing = iter((0.0, 60.0))
        real = clock_of_textual.get_time
        late = [0.0]

        def get_time():
            late[0] = next(standing, late[0])
            return real() + late[0]

        monkeypatch.setattr(clock_of_textual, "get_time", get_time)
        Debounce(app, lambda: calls.append(1)).ask(0.01)
        await eventually(lambda: calls)


def test_nothing_else_in_the_chat_waits_for_a_timer_that_may_never_come():
    modules = Path(widgets.__file__).parent.glob("*.py")
    assert [it.name for it in modules if ".set_timer(" in it.read_text()] == []
