"""What a terminal is asked, over a pseudo-terminal whose other side is this test."""

import os
import threading

import pytest

from accord_tools.pictures.terminal_graphics import NO_GRAPHICS, CellSize, ask_terminal, may_be_asked

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pseudo-terminals")


def asked(*answers, within=60.0):
    """What `ask_terminal` finds in a terminal that answers so, after it was asked."""
    import pty

    ours, theirs = pty.openpty()
    questions = b""

    def terminal():
        nonlocal questions
        while not questions.endswith(b"\x1b[c"):
            questions += os.read(ours, 100)
        for answer in answers:
            os.write(ours, answer)

    thread = threading.Thread(target=terminal)
    thread.start()
    try:
        return ask_terminal(theirs, theirs, within)
    finally:
        thread.join()
        os.close(ours)
        os.close(theirs)


def test_a_terminal_with_sixel_says_so_and_how_large_its_characters_are():
    graphics, typed = asked(b"\x1b[6;18;9t", b"\x1b[?62;4;22c")
    assert (graphics.protocol, graphics.cell, typed) == ("sixel", CellSize(9, 18), "")


def test_kittys_protocol_is_used_only_where_its_placeholders_are_known():
    ok, end = b"\x1b_Gi=31;OK\x1b\\", b"\x1b[?62c"
    assert asked(ok, b"\x1bP>|kitty(0.42.1)\x1b\\", end)[0].protocol == "kitty"
    assert asked(ok, b"\x1bP>|Konsole 24.8\x1b\\", b"\x1b[?62;4c")[0].protocol == "sixel"
    assert asked(b"\x1bP>|kitty(0.42.1)\x1b\\", end)[0].protocol is None


def test_a_terminal_that_shows_image_files_is_known_by_its_name():
    assert asked(b"\x1bP>|iTerm2 3.5.11\x1b\\\x1b[?64;1;4c")[0].protocol == "iterm2"


def test_what_is_typed_between_the_answers_is_not_lost():
    graphics, typed = asked(b"fix", b"\x1b[6;20;10t the", b"\x1b[?62;4", b"c")
    assert (graphics.protocol, typed) == ("sixel", "fix the")


def test_a_terminal_that_does_not_answer_is_not_waited_for_long():
    assert asked(within=0.05) == (NO_GRAPHICS, "")


def test_what_is_no_terminal_is_not_asked():
    reads, writes = os.pipe()
    assert ask_terminal(reads, writes) == (NO_GRAPHICS, "")
    os.close(writes)
    assert os.read(reads, 10) == b""
    assert not may_be_asked({})
    os.close(reads)


@pytest.mark.parametrize(("term", "may"), [("xterm", True), ("linux", False), ("vt220", False), ("foot", True)])
def test_a_simple_terminal_is_not_asked(term, may):
    assert may_be_asked({"TERM": term}) is may
