"""Which path a `file:` URI names, on Windows and elsewhere."""

import pytest

from accord.paths import path_of_uri, path_text

TABLE = {
    "file:///w/a%20b.py": ("/w/a b.py", "\\w\\a b.py"),
    "FILE:///w/a.py": ("/w/a.py", "\\w\\a.py"),
    "file://localhost/w/a.py": ("/w/a.py", "\\w\\a.py"),
    "file:/w/a.py": ("/w/a.py", "\\w\\a.py"),
    "file:///C:/a/b.py": ("C:/a/b.py", "C:\\a\\b.py"),
    "file:///c%3A/a%20b.py": ("c:/a b.py", "c:\\a b.py"),
    "file:///C|/a.py": ("C:/a.py", "C:\\a.py"),
    "file://C:/a.py": ("C:/a.py", "C:\\a.py"),
    "file:///C:/": ("C:/", "C:\\"),
    "file:///C:": ("C:", "C:"),
    "file://server/share/a%23b.py": (None, "\\\\server\\share\\a#b.py"),
    "file:////server/share/a.py": ("//server/share/a.py", "\\\\server\\share\\a.py"),
    "file:///w/%00": (None, None),
    "file:///CD/a.py": ("/CD/a.py", "\\CD\\a.py"),
    "https://example.org/w/a.py": (None, None),
    "/w/a.py": (None, None),
    "untitled:One": (None, None),
}


@pytest.mark.parametrize("uri", TABLE)
def test_a_uri_names_a_path_by_the_rules_of_the_system(uri: str) -> None:
    assert (path_text(uri, windows=False), path_text(uri, windows=True)) == TABLE[uri]


def test_the_path_of_a_file_becomes_a_uri_and_back(tmp_path) -> None:
    path = tmp_path / "a b#ü%.py"
    assert path_of_uri(path.as_uri()) == path
