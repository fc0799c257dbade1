"""When to stop reading: never while something may need what is to be read."""

from __future__ import annotations

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from accord.engine.flow_control import MARK, ReadPause


class Reading(RuleBasedStateMachine):
    """Any order of what a connection does to its intake, against the rules in the words of the design."""

    @initialize(mark=st.sampled_from([0, 1, 4, 1000]))
    def begin(self, mark):
        self.switches = []
        self.intake = ReadPause(lambda: self.switches.append("pause"), lambda: self.switches.append("resume"), mark)
        self.mark = mark
        self.size = self.impatient = self.senders = 0

    @rule(size=st.one_of(st.integers(0, 10), st.integers(0, 3000)))
    def something_is_received_or_handled(self, size):
        was_paused = self.intake.paused
        self.size = size
        self.intake.resized(size)
        if self.needed:
            assert not self.intake.paused
        elif size > self.mark:
            assert self.intake.paused
        elif size <= self.mark // 4:
            assert not self.intake.paused
        else:
            assert self.intake.paused == was_paused, "between the marks everything stays as it is"

    @rule()
    def a_request_needs_its_answer_soon(self):
        self.impatient += 1
        self.intake.impatient += 1
        if self.intake.paused:
            self.intake.decide()
        assert not self.intake.paused

    @rule()
    def it_has_its_answer(self):
        if self.impatient:
            self.impatient -= 1
            self.intake.impatient -= 1

    @rule()
    def a_sender_waits_for_room(self):
        self.senders += 1
        self.intake.senders += 1
        self.intake.decide()
        assert not self.intake.paused

    @rule()
    def a_sender_has_room(self):
        if self.senders:
            self.senders -= 1
            self.intake.senders -= 1
            self.intake.decide()
            assert self.intake.paused == (not self.needed and self.size > self.mark)

    @property
    def needed(self):
        return self.impatient or self.senders

    @invariant()
    def reading_never_rests_while_it_is_needed(self):
        assert not (self.intake.paused and self.needed)

    @invariant()
    def reading_never_rests_over_an_empty_queue(self):
        assert not (self.intake.paused and self.size == 0)

    @invariant()
    def it_pauses_and_resumes_in_turn(self):
        assert self.switches[0::2] == ["pause"] * len(self.switches[0::2])
        assert self.switches[1::2] == ["resume"] * len(self.switches[1::2])
        assert self.intake.paused == (len(self.switches) % 2 == 1)


TestReading = Reading.TestCase
TestReading.settings = settings(deadline=None, max_examples=100, stateful_step_count=50)


@pytest.fixture
def intake():
    made = ReadPause(lambda: None, lambda: None, 1000)
    made.resized(1001)
    assert made.paused
    return made


def test_the_mark_is_larger_than_any_read():
    assert MARK >= 1024 * 1024


def test_reading_goes_on_below_a_quarter_of_the_mark(intake):
    intake.resized(251)
    assert intake.paused
    intake.resized(250)
    assert not intake.paused


def test_exactly_the_mark_is_not_past_it(intake):
    intake.resized(0)
    intake.resized(1000)
    assert not intake.paused


def test_reading_may_rest_again_once_nothing_needs_it_and_more_arrives(intake):
    intake.impatient += 1
    intake.decide()
    intake.impatient -= 1
    assert not intake.paused
    intake.resized(1002)
    assert intake.paused
