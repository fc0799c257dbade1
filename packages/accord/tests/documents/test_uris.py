"""URIs of documents: made from paths, read as paths, and compared."""

import os
from pathlib import Path

import pytest

from accord.documents.text_document import is_uri, key_of, uri_of
from accord.paths import path_of_uri

ROOT = Path("C:/w" if os.name == "nt" else "/w")
PREFIX = "file:///C:/w" if os.name == "nt" else "file:///w"


def test_a_path_with_a_space_becomes_a_uri_and_back():
    assert uri_of(str(ROOT / "a b" / "ü.py")) == f"{PREFIX}/a%20b/%C3%BC.py"
    assert path_of_uri(f"{PREFIX}/a%20b/%C3%BC.py") == ROOT / "a b" / "ü.py"
    assert uri_of("a.py", ROOT) == f"{PREFIX}/a.py"


def test_a_uri_stays_as_its_peer_wrote_it():
    assert uri_of("untitled:One") == "untitled:One"
    assert path_of_uri("untitled:One") is None


def test_another_host_is_a_share_on_windows_and_nothing_elsewhere():
    share = Path("//host/share/a") if os.name == "nt" else None
    assert path_of_uri("file://host/share/a") == share


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///w/a%20b.py", "file:///w/a b.py"),
        ("FILE:///w/a.py", "file:///w/a.py"),
        ("file://localhost/w/a.py", "file:///w/a.py"),
        ("file:///C%3A/a.py", "file:///c:/a.py"),
        ("file:///w//a.py", "file:///w/a.py"),
        ("file:///w/%C3%BC.py", "file:///w/ü.py"),
    ],
)
def test_different_spellings_of_one_document_have_one_key(one, other):
    assert key_of(one) == key_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///w/a.py", "file:///w/A.py"),
        ("file:///w/a.py", "file://host/w/a.py"),
        ("untitled:a", "untitled:A"),
        ("file:///w/a%2Fb", "file:///w/c"),
    ],
)
def test_different_documents_have_different_keys(one, other):
    assert key_of(one) != key_of(other)


def test_a_drive_is_a_path_and_no_scheme():
    assert not is_uri("C:/a.py")
    assert is_uri("untitled:a")
