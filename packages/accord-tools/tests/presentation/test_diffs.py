"""Which lines of a change are shown."""

from accord_tools.presentation.diffs import FileDiff


def shown(old, new):
    """The sign, the two numbers and the words of each line."""
    return [
        (it.sign, it.old, it.new, "".join(text for text, _ in it.spans)) for it in FileDiff("\n".join(old), new).lines
    ]


def test_unchanged_lines_between_two_changes_are_shown_but_many_are_counted():
    between = [f"line {number}" for number in range(20)]
    few = shown(["a", *between[:2], "b"], "\n".join(["A", *between[:2], "B"]))
    assert [it[0] for it in few] == ["-", "+", " ", " ", "-", "+"]
    assert few[2] == (" ", 2, 2, "line 0")
    many = shown(["a", *between, "b"], "\n".join(["A", *between, "B"]))
    assert [it[0] for it in many] == ["-", "+", " ", " ", " ", "~", " ", " ", " ", "-", "+"]
    assert many[5] == ("~", None, None, "⋯ 14 unchanged lines")
    assert many[6] == (" ", 19, 19, "line 17")
