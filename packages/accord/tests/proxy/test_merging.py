"""What a handler changed, applied to JSON with members that no type has; and the bytes that wait in a link."""

from __future__ import annotations

import pytest

from accord.proxy.hop import merged
from accord.proxy.link import OutputBacklog, QueuedBytes


@pytest.mark.parametrize(
    ("raw", "before", "after", "expected"),
    [
        ({"a": 1, "new": 2}, {"a": 1}, {"a": 5}, {"a": 5, "new": 2}),
        ({"a": 1, "new": 2}, {"a": 1}, {}, {"new": 2}),
        ({"a": None}, {}, {"a": 1}, {"a": 1}),
        ({"a": {"x": 1, "n": 0}}, {"a": {"x": 1}}, {"a": {"x": 2}}, {"a": {"x": 2, "n": 0}}),
        ([{"x": 1, "n": 0}], [{"x": 1}], [{"x": 9}, {"x": 1}], [{"x": 9}, {"x": 1, "n": 0}]),
        ([{"x": 1, "n": 0}, {"x": 2, "n": 0}], [{"x": 1}, {"x": 2}], [{"x": 2}], [{"x": 2, "n": 0}]),
        ([{"x": 1, "n": 0}], [{"x": 1}], [{"x": 3}], [{"x": 3, "n": 0}]),
        ([1, "dropped", 2], [1, 2], [1, 3], [1, 3]),
        ({"a": [1.0]}, {"a": [1.0]}, {"a": [1.0]}, {"a": [1.0]}),
        ({"a": 1}, {"a": 1}, {"a": [1]}, {"a": [1]}),
    ],
)
def test_only_the_difference_is_applied(raw, before, after, expected):
    assert merged(raw, before, after) == expected


def test_the_oldest_bytes_of_a_backlog_are_the_ones_that_were_written():
    backlog = OutputBacklog()
    backlog.sent(QueuedBytes(inwards=100), 60)
    backlog.sent(QueuedBytes(outwards=50, own=10), 120)
    assert backlog.sum == QueuedBytes(100, 50, 10)
    backlog.written(61)
    assert backlog.sum == QueuedBytes(100, 50, 10)  # some of the first part still waits
    backlog.written(60)
    assert backlog.sum == QueuedBytes(0, 50, 10)
    backlog.written(0)
    assert backlog.sum == QueuedBytes()
