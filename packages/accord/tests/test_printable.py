"""What a peer says neither acts on a terminal nor hides there."""

import sys
import unicodedata

import pytest

from accord.printable import CUT, MOST_MARKS, Printable, columns, cut, label, printable, wrapped

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"
PICTURES = {chr(number): chr(0x2400 + number) for number in range(0x20)} | {"\x7f": "\u2421"}
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2065\u3164\uffa0\ufff0\ufff8"

SEQUENCES = {
    "a colour": f"{ESC}[31mred{ESC}[0m",
    "a colour with the 8-bit CSI": "\x9b31mred",
    "a cleared screen": f"{ESC}[2J{ESC}[H",
    "a cursor that moves up": f"{ESC}[10A{ESC}[1G",
    "an erased line": f"{ESC}[2K\r",
    "a saved cursor": f"{ESC}7{ESC}8{ESC}[s{ESC}[u",
    "the alternate screen": f"{ESC}[?1049h",
    "a scroll region": f"{ESC}[5;10r",
    "a reset": f"{ESC}c",
    "a question to the terminal": f"{ESC}[6n{ESC}[c{ESC}Z\x05",
    "a title": f"{ESC}]0;PWNED{BEL}",
    "a title with the 8-bit OSC": "\x9d0;PWNED\x9c",
    "the clipboard": f"{ESC}]52;c;ZXZpbA=={BEL}",
    "a link": f"{ESC}]8;;https://example.com{ST}click{ESC}]8;;{ST}",
    "a key of the terminal": f"{ESC}P+q544e{ST}",
    "the 8-bit DCS": "\x90$q\x22p\x9c",
    "a private message, an application's, a start of string": f"{ESC}^x{ST}{ESC}_x{ST}{ESC}Xx{ST}",
    "the same in 8 bits": "\x9ex\x9c\x9fx\x9c\x98x\x9c",
    "another character set": f"{ESC}(0\x0e\x0f{ESC}%@",
    "backspaces over what was said": "rm -rf\b\b\b\b\b\bls    ",
    "a line that is written over": "rm -rf ~\rls      ",
    "form feed, vertical tab, next line, index": f"\x0b\x0c\x85\x84{ESC}D{ESC}E{ESC}M",
    "a bidirectional override": "\u202egpj.exe\u202c",
    "an isolate": "\u2066\u2067\u2068x\u2069",
    "marks of direction": "\u200e\u200f\u061c",
    "separators of lines and paragraphs": "a\u2028b\u2029c",
    "characters without a width": "pass\u200bword\u2060\ufeff\u00ad",
    "joiners where none belong": "a\u200db\u200cc\u200d\u200d",
    "tags": "".join(chr(0xE0000 + ord(it)) for it in "evil"),
    "private use": "\ue000\U000f0000\U00100000",
    "halves of an emoji": "\ud83d \ude00",
    "annotations between lines": "\ufff9x\ufffay\ufffb",
    "letters that show nothing": INVISIBLE,
    "variations in a row": "a\ufe0f\ufe0f\ufe01\U000e0101",
}
ALLOWED = {"\n", "\t"}


def acts(text):
    """The characters of a text that act on a terminal, or that nobody sees; a joiner within emoji is none."""
    found = []
    for before, character in zip(" " + text, text, strict=False):
        category = unicodedata.category(character)
        joins = character in "\u200c\u200d" and not before.isascii() and before not in "\u200c\u200d"
        hidden = category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in ALLOWED and not joins
        if hidden or character in INVISIBLE:
            found.append(character)
    return found


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_nothing_acts_on_a_terminal_wherever_the_text_is_cut(sequence):
    text = f"before {sequence} behind"
    whole = printable(text)
    assert acts(whole) == []
    assert whole.startswith("before ")
    assert whole.endswith(" behind")
    for place in range(len(text) + 1):
        chunks = Printable()
        assert chunks.add(text[:place]) + chunks.add(text[place:]) + chunks.rest() == whole
    one_by_one = Printable()
    assert "".join(map(one_by_one.add, text)) + one_by_one.rest() == whole


def test_no_character_of_unicode_acts_on_a_terminal_and_none_disappears():
    # The planes between hold ideographs alone, or nothing.
    for number in (*range(0x20000), *range(0xE0000, 0xE1000), *range(0xF0000, 0xF0100), sys.maxunicode):
        character = chr(number)
        shown = printable(f"a{character}b")
        assert acts(shown) == [], f"U+{number:04X}"
        assert len(shown) >= 3, f"U+{number:04X}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *[(character, picture) for character, picture in PICTURES.items() if character not in "\t\n"],
        *[(chr(number), f"<U+{number:04X}>") for number in range(0x80, 0xA0)],
        ("\u202e", "<U+202E>"),
        ("\U000e0041", "<U+E0041>"),
        ("\ud83d", "<U+D83D>"),
        ("\u00a0", " "),
    ],
)
def test_what_is_not_printed_is_seen_as_what_it_is(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain words,\n\ttabs and lines\n",
        "Grüße, Ελληνικά, Русский, עברית, العربية, हिन्दी, ไทย, 日本語　全角, 한국어",
        "می\u200cخواهم क्\u200dष",  # noqa: RUF001
        "⚠️ ✅ 1️⃣ 👩\u200d💻 👨\u200d👩\u200d👧 🏳️\u200d🌈 🇩🇪 👍🏽 ❤️\u200d🔥",
        "\U0001fae8 and what this Python has not yet seen: \U0001faff",
        "e\u0301 Tiê\u0301ng Viê\u0323t, שָׁ֔, box ┌─┐ │ ⠋ ⣿",
    ],
)
def test_honest_text_stays_as_it_is(text):
    assert printable(text) == text


def test_line_ends_of_windows_are_line_ends_also_between_two_chunks():
    chunks = Printable()
    assert [chunks.add("one\r"), chunks.add("\ntwo\r"), chunks.add("three\r"), chunks.rest()] == [
        "one", "\ntwo", "␍three", "␍",
    ]  # fmt: skip


def test_a_character_carries_a_bounded_number_of_marks_and_a_line_begins_with_none():
    shown = printable("z" + "\u0301" * 1000)
    assert shown.startswith("z" + "\u0301" * MOST_MARKS + "<U+0301>")
    assert shown.count("\u0301") == MOST_MARKS
    for start in ("", "\n", "\t", "\x1b"):
        assert "\u0301" not in printable(f"{start}\u0301")
    chunks = Printable()
    assert "".join(chunks.add("\u0301") for _ in range(1000)).count("\u0301") == 0


def test_a_label_is_one_line_of_bounded_width():
    assert label("two\nlines  and\u2028more", 40) == "two lines and<U+2028>more"
    assert label("x" * 10_000, 40) == "x" * 39 + CUT
    assert label("日" * 10_000, 40) == "日" * 19 + CUT
    assert label(" " * 100_000 + "end", 40) == CUT
    assert label("ends here", 9) == "ends here"
    for sequence in SEQUENCES.values():
        assert columns(label(sequence * 100, 30)) <= 30
        assert "\n" not in label(sequence * 100, 30)


def test_texts_are_cut_and_wrapped_by_the_columns_that_they_take():
    assert [columns(it) for it in ("日本", "e\u0301", "👩\u200d💻", "⚠️", "\uff46")] == [4, 1, 4, 2, 2]
    assert cut("日本語", 5) == "日本" + CUT
    assert list(wrapped("the quick brown fox\njumps", 10)) == ["the quick", "brown fox", "jumps"]
    assert list(wrapped("x" * 25, 10)) == ["x" * 10, "x" * 10, "x" * 5]
    assert list(wrapped("日本語日本語", 5)) == ["日本", "語日", "本語"]
    text = "a" * 9 + "e" + "\u0301" * 5 + "b"
    assert list(wrapped(text, 10)) == [text[:-1], "b"]
