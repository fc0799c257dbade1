"""When prompts begin and end in version 2: every order of receipt, message and states."""

from __future__ import annotations

from itertools import permutations

import pytest

from accord.client.v2_turn_tracker import TrackedPrompt, V2TurnTracker, WorkEnd
from accord.schema import codec, v2


class Told:
    """A session whose updates a test tells; it keeps how each prompt ended."""

    def __init__(self) -> None:
        self.tracker = V2TurnTracker[TrackedPrompt](())
        self.prompts: dict[str, TrackedPrompt] = {}
        self.ends: dict[str, str | None] = {}

    def send(self, name: str) -> None:
        self.prompts[name] = TrackedPrompt()
        self.tracker.sent(self.prompts[name])

    def receipt(self, name: str) -> None:
        end = self.tracker.received_receipt(self.prompts[name], f"of {name}")
        if end is not None:
            self._ended(end, [self.prompts[name]])

    def message(self, name: str) -> None:
        self._tell({"sessionUpdate": "user_message", "messageId": f"of {name}", "content": []})

    def chunk(self, name: str) -> None:
        content = {"type": "text", "text": name}
        self._tell({"sessionUpdate": "user_message_chunk", "messageId": f"of {name}", "content": content})

    def state(self, word: str, stop_reason: str | None = None) -> None:
        reason = {} if stop_reason is None else {"stopReason": stop_reason}
        self._tell({"sessionUpdate": "state_update", "state": word, **reason})

    def say(self) -> None:
        content = {"type": "text", "text": "x"}
        self._tell({"sessionUpdate": "agent_message_chunk", "messageId": "a", "content": content})

    def _tell(self, update: object) -> None:
        typed = codec.convert({"sessionId": "s", "update": update}, v2.UpdateSessionNotification).update
        found = self.tracker.received(typed)
        if found is not None:
            self._ended(*found)

    def _ended(self, end: WorkEnd, prompts: object) -> None:
        for name, prompt in self.prompts.items():
            if prompt in prompts:  # type: ignore[operator]
                assert name not in self.ends, "a prompt ends once"
                self.ends[name] = end.stop_reason


def play(told: Told, script: str) -> Told:
    """Play steps such as `send a`, `receipt a`, `message a`, `running`, `idle end_turn`."""
    for step in script.split(", "):
        word, _, name = step.partition(" ")
        if word in ("send", "receipt", "message", "chunk"):
            getattr(told, word)(name)
        elif word == "say":
            told.say()
        else:
            told.state(word, name or None)
    return told


ONE_PROMPT = {
    "the message, the receipt, the work": "send a, message a, receipt a, running, say, idle end_turn",
    "the work before the message": "send a, running, message a, receipt a, say, idle end_turn",
    "the message in pieces": "send a, running, chunk a, chunk a, receipt a, say, idle end_turn",
    "the receipt first": "send a, receipt a, message a, running, say, idle end_turn",
    "the receipt last": "send a, message a, running, say, idle end_turn, receipt a",
    "the receipt first and the message in the work": "send a, receipt a, running, message a, say, idle end_turn",
    "no message": "send a, receipt a, running, say, idle end_turn",
    "no word about the work": "send a, message a, receipt a, say, idle end_turn",
    "neither a message nor a word about the work": "send a, receipt a, say, idle end_turn",
    "work that waits for the user": "send a, message a, receipt a, running, requires_action, running, idle end_turn",
    "work that begins with a question": "send a, message a, receipt a, requires_action, idle end_turn",
    "an agent that lost track": "send a, message a, receipt a, running, unknown, say, idle end_turn",
    "a state of the future": "send a, message a, receipt a, pondering, say, idle end_turn",
    "an idle at the beginning": "idle, send a, message a, receipt a, running, idle end_turn",
    "an idle between the prompt and its work": "send a, idle, message a, receipt a, running, idle end_turn",
}


@pytest.mark.parametrize("script", ONE_PROMPT.values(), ids=ONE_PROMPT)
def test_one_prompt_is_done_exactly_when_its_work_has_ended(script):
    told = play(Told(), script.rpartition(", ")[0])
    assert told.ends == {}, "not before the last step"
    play(told, script.rpartition(", ")[2])
    assert told.ends == {"a": "end_turn"}
    assert told.tracker.prompts == []


def test_every_order_of_receipt_message_and_running_ends_with_the_same_idle():
    """The work itself has an order: it ends after it has begun, and a message is told of before the end."""
    for order in permutations(("receipt a", "message a", "running", "idle end_turn")):
        if order.index("idle end_turn") < max(order.index("running"), order.index("message a")):
            continue
        told = play(Told(), f"send a, {', '.join(order)}")
        assert told.ends == {"a": "end_turn"}, order


# Agents that tell of a prompt's message and of `running` always, or never; receipts come anywhere.

STYLES = [(tells, runs, says) for tells in (True, False) for runs in (True, False) for says in (True, False)]


def work(name: str, style: tuple[bool, bool, bool], stop_reason: str) -> list[list[str]]:
    """Every order of what an agent of this style tells of a prompt's work; the receipt is not part of it."""
    tells, runs, says = style
    told = [f"message {name}"] * tells + ["running"] * runs
    orders = {(*order, *["say"] * says) for order in permutations(told)}
    if tells and says:
        orders.add((*["running"] * runs, "say", f"message {name}"))
    return [[*order, f"idle {stop_reason}"] for order in sorted(orders)]


def with_receipt(steps: list[str], name: str, first: int = 0) -> list[list[str]]:
    """Every place that the receipt can have among these steps, from the place `first` on."""
    return [[*steps[:at], f"receipt {name}", *steps[at:]] for at in range(first, len(steps) + 1)]


def whole(name: str, style: tuple[bool, bool, bool], stop_reason: str) -> list[list[str]]:
    """Every order in which an agent of this style tells of one prompt, receipt and all."""
    return [order for steps in work(name, style, stop_reason) for order in with_receipt(steps, name)]


@pytest.mark.parametrize("style", STYLES)
def test_a_prompt_ends_with_its_receipt_and_its_idle_whatever_their_order(style):
    for before in ("", "idle, "):
        for steps in whole("a", style, "end_turn"):
            told = play(Told(), f"{before}send a, {', '.join(steps[:-1])}")
            assert told.ends == {}, steps
            play(told, steps[-1])
            assert told.ends == {"a": "end_turn"}, steps
            assert told.tracker.prompts == []


@pytest.mark.parametrize("style", STYLES)
def test_each_of_two_prompts_in_a_row_ends_with_its_own_idle(style):
    for first in whole("a", style, "end_turn"):
        for second in whole("b", style, "max_tokens"):
            told = play(Told(), ", ".join(["send a", *first, "send b", *second]))
            assert told.ends == {"a": "end_turn", "b": "max_tokens"}, (first, second)


@pytest.mark.parametrize("style", STYLES)
def test_of_two_prompts_at_once_each_ends_when_the_second_is_held(style):
    """Its receipt does not come before the end of the first one's work, after which it is inserted."""
    for first in work("a", style, "end_turn"):
        for second in work("b", style, "max_tokens"):
            steps = [*first, *second]
            for both in with_receipt(steps, "b", len(first)):
                for order in with_receipt(both, "a"):
                    told = play(Told(), ", ".join(["send a", "send b", *order]))
                    assert set(told.ends) == {"a", "b"}, order
                    # Without the messages, receipts tell prompts apart: in the right order, and both of them last or
                    # neither. Two receipts after one `idle` mean that it has ended both.
                    receipts = [order.index(f"receipt {name}") for name in "ab"]
                    late = [receipts[0] > order.index("idle end_turn"), receipts[1] > order.index("idle max_tokens")]
                    if style[0] or (receipts[0] < receipts[1] and late[0] == late[1]):
                        assert told.ends == {"a": "end_turn", "b": "max_tokens"}, order


@pytest.mark.parametrize("style", STYLES)
def test_of_two_prompts_at_once_both_end_when_the_second_steers_the_work(style):
    tells = style[0]
    for first in work("a", style, "end_turn"):
        inserted = [[*first[:at], "message b", *first[at:]] for at in range(len(first))] if tells else [first]
        for steps in inserted:
            for both in with_receipt(steps, "b"):
                for order in with_receipt(both, "a"):
                    idle = order.index("idle end_turn")
                    late = [order.index(f"receipt {name}") > idle for name in "ab"]
                    if not tells and late[0] != late[1]:
                        continue  # the second one looks like a prompt that is still to be worked on
                    told = play(Told(), ", ".join(["send a", "send b", *order]))
                    assert told.ends == {"a": "end_turn", "b": "end_turn"}, order


def test_an_agent_that_leaves_out_running_for_some_prompts_ends_them_by_what_it_says():
    told = play(Told(), "send a, message a, receipt a, running, say, idle end_turn")
    play(told, "send b, say, idle max_tokens, receipt b")
    assert told.ends == {"a": "end_turn", "b": "max_tokens"}


def test_a_held_prompt_is_not_done_by_the_end_of_the_work_before_it():
    told = play(Told(), "send a, message a, receipt a, running, send b, say, idle end_turn")
    assert told.ends == {"a": "end_turn"}
    play(told, "message b, receipt b, running, idle max_tokens")
    assert told.ends == {"a": "end_turn", "b": "max_tokens"}


@pytest.mark.parametrize("inserted", ["message b, receipt b", "receipt b, message b", "receipt b"])
def test_one_idle_ends_both_prompts_when_the_second_one_steered_the_work_of_the_first(inserted):
    told = play(Told(), f"send a, message a, receipt a, running, send b, {inserted}, say, idle end_turn")
    assert told.ends == {"a": "end_turn", "b": "end_turn"}


def test_of_three_prompts_each_gets_the_end_that_comes_after_its_own_message():
    told = play(Told(), "send a, send b, send c, message a, receipt a, running, message b, receipt b, idle end_turn")
    assert told.ends == {"a": "end_turn", "b": "end_turn"}
    play(told, "message c, running, idle refusal, receipt c")
    assert told.ends["c"] == "refusal"


def test_receipts_that_come_after_all_work_find_the_end_of_their_own_message():
    script = "send a, send b, message a, running, idle end_turn, message b, running, idle max_tokens"
    told = play(Told(), script)
    assert told.ends == {}
    play(told, "receipt b, receipt a")
    assert told.ends == {"a": "end_turn", "b": "max_tokens"}


def test_work_that_the_agent_began_by_itself_does_not_end_a_prompt_that_waits():
    told = play(Told(), "running, say, send a, say, idle end_turn")
    assert told.ends == {}
    play(told, "message a, receipt a, running, idle end_turn")
    assert told.ends == {"a": "end_turn"}


def test_a_turn_that_another_prompt_has_cancelled_does_not_end_that_prompt():
    told = play(Told(), "send a, message a, receipt a, running, send b, idle cancelled")
    assert told.ends == {"a": "cancelled"}
    play(told, "message b, receipt b, running, idle end_turn")
    assert told.ends == {"a": "cancelled", "b": "end_turn"}


def test_an_idle_that_only_reports_the_background_ends_nothing():
    told = play(Told(), "send a, message a, receipt a, running, idle end_turn, idle, idle")
    assert told.ends == {"a": "end_turn"}
    play(told, "send b, idle, message b, receipt b, idle, running, idle end_turn")
    assert told.ends == {"a": "end_turn", "b": "end_turn"}


def test_a_repeated_idle_with_its_stop_reason_is_no_new_end():
    told = play(Told(), "send a, message a, receipt a, running, idle end_turn, send b, idle end_turn, receipt b")
    assert told.ends == {"a": "end_turn"}
    play(told, "message b, running, idle cancelled")
    assert told.ends["b"] == "cancelled"


def test_a_prompt_that_was_refused_ends_by_no_idle_and_disturbs_no_other():
    told = play(Told(), "send a, message a, receipt a, running, send b")
    told.tracker.dropped(told.prompts["b"])
    play(told, "idle end_turn")
    assert told.ends == {"a": "end_turn"}
    assert told.tracker.unclaimed is None


def test_nothing_is_remembered_when_no_prompt_waits_for_its_receipt():
    told = play(Told(), "send a, message a, receipt a")
    for _ in range(100):
        play(told, "message x, running, idle end_turn")
    assert told.tracker.unclaimed is None
    assert told.tracker._ends == []  # pyright: ignore[reportPrivateUsage]


def test_an_end_of_the_connection_forgets_what_the_agent_did():
    told = play(Told(), "send a, message a, receipt a, running")
    assert told.tracker.is_working
    assert told.tracker.drop_all() == [told.prompts["a"]]
    assert not told.tracker.is_working
    play(told, "idle end_turn")
    assert told.ends == {}
