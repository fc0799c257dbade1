"""Names of files that Windows reads in a special way, and environments whose names have no case."""

import pytest

from accord.project.confined import is_link, plain_path, why_refused
from accord.windows.processes import merged_environment


@pytest.mark.parametrize(
    "name",
    [
        "CON",
        "con",
        "nul.txt",
        "NUL .txt",
        "AUX.",
        "com1",
        "COM¹.log",
        "LPT9.tar.gz",
        "conin$",
        "CONOUT$",
        "com0",
        "nul:",
    ],
)
def test_a_name_of_a_device_is_refused(name):
    assert why_refused(name) == "names a device of Windows"


@pytest.mark.parametrize("name", ["notes.txt:hidden", "notes.txt::$DATA", "C:notes.txt", ":x"])
def test_an_alternate_data_stream_is_refused(name):
    assert why_refused(name) == "names an alternate data stream"


@pytest.mark.parametrize("name", ["secret.", "secret ", "secret. .", "..."])
def test_a_name_that_windows_would_shorten_is_refused(name):
    assert why_refused(name) == "ends with a dot or a space, which Windows removes"


@pytest.mark.parametrize("name", ["a*b", "a?", "<a", "a>", 'a"', "a|b", "a\x01b", "a/b", "a\\b"])
def test_a_name_with_a_forbidden_character_is_refused(name):
    assert why_refused(name) == "has a character that Windows does not allow in names"


@pytest.mark.parametrize(
    "name", ["README.md", ".gitignore", "console", "com10", "null", "a b.txt", "nul-x", "straße", "xCON"]
)
def test_an_ordinary_name_is_allowed(name):
    assert why_refused(name) is None


@pytest.mark.parametrize(
    ("told", "plain"),
    [
        ("\\\\?\\C:\\project\\a.py", "C:\\project\\a.py"),
        ("\\\\?\\UNC\\server\\share\\a.py", "\\\\server\\share\\a.py"),
        ("\\\\?\\Volume{1234}\\a.py", "\\\\?\\Volume{1234}\\a.py"),
        ("C:\\a", "C:\\a"),
    ],
)
def test_the_path_of_an_open_file_is_compared_without_its_prefix(told, plain):
    assert plain_path(told) == plain


@pytest.mark.parametrize(
    ("attributes", "tag", "link"),
    [
        (0x20, 0, False),  # an ordinary file
        (0x420, 0xA000000C, True),  # a symbolic link
        (0x410, 0xA0000003, True),  # a junction
        (0x420, 0x9000001A, False),  # a file that is kept in a cloud
        (0x420, 0, True),  # the tag could not be read
    ],
)
def test_a_link_is_a_reparse_point_that_stands_for_another_name(attributes, tag, link):
    assert is_link(attributes, tag) is link


def test_names_of_variables_have_no_case():
    assert merged_environment({"PATH": "C:\\a", "Temp": "C:\\t"}, {"Path": "C:\\b", "temp": None}, {}) == {
        "PATH": "C:\\b"
    }


def test_a_process_gets_the_system_folder_whatever_is_inherited():
    own = {"SystemRoot": "C:\\Windows", "SECRET": "x"}
    assert merged_environment({}, {}, own) == {"SYSTEMROOT": "C:\\Windows"}
    assert merged_environment({}, {"systemroot": "D:\\W"}, own) == {"SYSTEMROOT": "D:\\W"}
