"""Who takes the keys while a question is open: every order of events, up to five."""

from itertools import product

import pytest

from accord_tools.tui.question_bar import QUIET, KeyOwner

EVENTS = ("ask", "withdraw", "paint", "key", "quiet", "fill", "empty", "tab")


class History:
    """The state machine after some events, and what matters of them."""

    def __init__(self, events):
        self.keys, self.now, self.asked = KeyOwner(), 0.0, None
        self.last_touch = 0.0
        """When a key, or tab, or the painting of the question came last."""
        self.is_painted = self.is_filled = self.was_tabbed = False
        for number, event in enumerate(events):
            getattr(self, event)(number)

    def ask(self, number):
        self.asked = f"question {number}"
        self.keys.ask(self.asked)
        self.is_painted = self.was_tabbed = False

    def withdraw(self, _):
        self.asked = None
        self.keys.ask(None)
        self.is_painted = self.was_tabbed = False

    def paint(self, _):
        self.keys.paint(self.asked, self.now)
        if not self.is_painted:
            self.last_touch = self.now
        self.is_painted = True

    def key(self, _):
        if self.keys.key(self.now) == "editor":
            self.last_touch = self.now
        elif self.asked is not None:
            assert self.is_painted
            assert self.now - self.last_touch >= QUIET

    def quiet(self, _):
        self.now += QUIET

    def fill(self, _):
        self.keys.edit(is_empty=False)
        self.is_filled = True

    def empty(self, _):
        self.keys.edit(is_empty=True)
        self.is_filled = False

    def tab(self, _):
        self.keys.tab(self.now)
        self.was_tabbed, self.last_touch = True, self.now


@pytest.fixture(scope="module")
def histories():
    return [events for length in range(6) for events in product(EVENTS, repeat=length)]


def test_a_question_takes_keys_and_clicks_only_half_a_second_after_it_was_painted_and_after_the_last_key(histories):
    for events in histories:
        it = History(events)
        is_ready = it.asked is not None and it.is_painted and it.now - it.last_touch >= QUIET
        assert it.keys.is_quiet(it.now) == is_ready, events
        if it.keys.owner(it.now) == "question":
            assert is_ready, events


def test_without_tab_the_text_in_the_editor_decides_who_takes_the_keys(histories):
    for events in histories:
        it = History(events)
        if it.asked is not None and it.is_painted and not it.was_tabbed:
            it.quiet(0)
            assert it.keys.owner(it.now) == ("editor" if it.is_filled else "question"), events


def test_emptying_the_editor_gives_the_keys_back_whatever_was_before(histories):
    for events in histories:
        it = History(events)
        if it.asked is not None and it.is_painted:
            for event in ("fill", "key", "empty", "key"):  # a letter, and the key that deletes it
                getattr(it, event)(0)
            assert it.was_tabbed or it.keys.owner(it.now) == "editor", events
            it.quiet(0)
            assert it.keys.owner(it.now) == "question", events


def test_tab_gives_the_keys_to_the_other_side_after_half_a_second(histories):
    for events in histories:
        it = History(events)
        if it.asked is not None and it.is_painted:
            before = it.keys.side
            it.tab(0)
            assert it.keys.owner(it.now) == "editor", events
            it.quiet(0)
            assert it.keys.owner(it.now) == it.keys.side != before, events


def test_without_a_question_the_editor_takes_every_key(histories):
    for events in histories:
        it = History((*events, "withdraw", "paint", "quiet"))
        assert it.keys.owner(it.now) == "editor", events
        assert not it.keys.is_quiet(it.now), events


def test_a_key_that_came_before_the_painting_is_the_editors_although_it_is_handled_later():
    keys = KeyOwner()
    keys.ask("question")
    keys.paint("question", 10.0)
    assert keys.key(9.0) == "editor"
    assert keys.owner(10.0 + QUIET) == "question"
