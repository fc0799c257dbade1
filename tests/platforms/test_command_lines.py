"""Command lines of Windows: which file is started, and what each kind of program reads from its one line of text."""

import ntpath

import pytest
from hypothesis import given, strategies as st

from accord.windows.processes import batch_argument, command_line, find_program

CMD = "C:\\Windows\\System32\\cmd.exe"
NPX = "C:\\node\\npx.cmd"


def finder(*files):
    """`find_program` on a disk with these files, whose names have no case."""
    present = {name.lower() for name in files}

    def find(name, path="C:\\tools;C:\\node", folder="D:\\project", **variables):
        return find_program(name, {"PATH": path, **variables}, folder, lambda file: file.lower() in present)

    return find


def as_the_c_library_reads(line):
    """The arguments that a program of Windows gets from its command line, by the rules that Microsoft documents."""
    words, word, quoted, started, at = [], "", False, False, 0
    while at < len(line):
        if line[at] == "\\":
            end = at
            while end < len(line) and line[end] == "\\":
                end += 1
            before_quote = end < len(line) and line[end] == '"'
            count, at, started = end - at, end, True
            word += "\\" * (count // 2 if before_quote else count)
            if before_quote and count % 2:
                word, at = word + '"', at + 1
        elif line[at] == '"':
            started = True
            if quoted and line[at + 1 : at + 2] == '"':
                word, at = word + '"', at + 1
            else:
                quoted = not quoted
            at += 1
        elif line[at] in " \t" and not quoted:
            if started:
                words.append(word)
            word, started, at = "", False, at + 1
        else:
            word, started, at = word + line[at], True, at + 1
    return [*words, word] if started else words


def as_cmd_expands(text):
    """What `cmd.exe` makes of percent signs: `%cd:~,%` is an empty text, any other complete name is a leak."""
    expanded = text.replace("%cd:~,%", "")
    assert expanded.count("%") == text.count("%cd:~,%")
    return expanded


def test_a_name_is_found_on_path_with_the_endings_of_programs():
    find = finder("C:\\node\\npx.cmd", "C:\\node\\npx", "C:\\tools\\git.exe")
    assert find("npx") == "C:\\node\\npx.cmd"
    assert find("git") == find("git.exe") == "C:\\tools\\git.exe"
    assert find("GIT.EXE") == "C:\\tools\\GIT.EXE"
    assert find("uvx") is None


def test_pathext_decides_the_order_of_endings_but_adds_nothing_that_cannot_be_started():
    find = finder("C:\\tools\\a.bat", "C:\\tools\\a.exe", "C:\\tools\\b.py")
    assert find("a") == "C:\\tools\\a.exe"
    assert find("a", PATHEXT=".BAT;.EXE") == "C:\\tools\\a.bat"
    assert find("b", PATHEXT=".PY;.EXE") is None


@pytest.mark.parametrize("path", ["", ".", "bin", "\\bin", "C:bin", ";;"])
def test_a_name_is_not_searched_in_the_current_folder(path):
    anywhere = find_program("npx", {"PATH": path}, "D:\\project", lambda _: True)
    assert anywhere is None


def test_a_path_is_relative_to_the_folder_of_the_new_process():
    find = finder("D:\\project\\bin\\agent.exe", "D:\\agent.cmd")
    assert find(".\\bin\\agent") == find("bin/agent.exe") == "D:\\project\\bin\\agent.exe"
    assert find("..\\agent") == "D:\\agent.cmd"


def test_an_ordinary_program_gets_its_arguments_as_the_c_library_reads_them():
    program, line = command_line("C:\\a b\\x.exe", ['say "hi"', "", "back\\"], CMD)
    assert program == "C:\\a b\\x.exe"
    assert as_the_c_library_reads(line) == ["C:\\a b\\x.exe", 'say "hi"', "", "back\\"]


def test_a_batch_file_is_run_by_cmd_with_extensions_on_and_delayed_expansion_off():
    program, line = command_line(NPX, ["-y", "an agent"], CMD)
    assert program == CMD
    assert line == f'"{CMD}" /e:ON /v:OFF /d /s /c ""{NPX}" -y "an agent""'


@pytest.mark.parametrize(
    "hostile", ['"&calc.exe&"', "%PATH%", "a&b", "a|b", "a^b", "<in", ">out", "!x!", "(", "%", "é"]
)
def test_what_cmd_reads_as_its_own_language_stands_in_quotes(hostile):
    written = batch_argument(hostile)
    assert written.startswith('"')
    assert written.endswith('"')
    assert written.count('"') % 2 == 0
    assert as_the_c_library_reads(as_cmd_expands(written)) == [hostile]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n")), max_size=4))
def test_every_argument_of_a_batch_file_arrives_as_it_was_given(arguments):
    written = " ".join(map(batch_argument, arguments))
    assert as_the_c_library_reads(as_cmd_expands(written)) == arguments


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n")))
def test_a_special_character_of_cmd_is_never_outside_of_quotes(argument):
    outside = "".join(batch_argument(argument).split('"')[::2])
    assert not set(outside) & set("&|<>^()!%, ;=\t")


@pytest.mark.parametrize("argument", ["two\nlines", "carriage\r", "null\0"])
def test_a_batch_file_is_not_given_what_no_line_can_hold(argument):
    with pytest.raises(ValueError, match=r"a batch file .* cannot be given an argument with a line break"):
        command_line(NPX, [argument], CMD)


def test_a_line_for_cmd_stays_as_it_is():
    line = 'git log --format="%h" && echo "done"'
    assert command_line(CMD, ["/d", "/c", line], CMD) == (CMD, f'{CMD} /d /s /c "{line}"')
    assert command_line(CMD, ["/S", "/C", line], CMD) == (CMD, f'{CMD} /s /C "{line}"')


def test_several_words_for_cmd_are_quoted_one_by_one():
    assert command_line(CMD, ["/c", "dir", "my folder"], CMD) == (CMD, f'{CMD} /s /c "dir "my folder""')
    assert command_line(CMD, ["/q"], CMD) == (CMD, f"{CMD} /q")


def test_the_tests_reader_is_that_of_the_c_library():
    assert as_the_c_library_reads('a "b c" d\\\\"e f" "g\\"h"') == ["a", "b c", "d\\e f", 'g"h']
    assert ntpath.basename(NPX) == "npx.cmd"
