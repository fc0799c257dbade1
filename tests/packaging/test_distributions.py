"""The sdist and the wheel: the same bytes wherever they are built, and all that they should have."""

import hashlib
import os
import re
import stat
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser

import accord
from tests.packaging.building import ROOT, TIME, copied, distributions


def test_two_builds_at_different_paths_and_times_are_the_same_bytes(built, tmp_path):
    source = copied(tmp_path / "another" / "place")
    for path in source.rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
            path.chmod(0o600)
    again = distributions.build(source, tmp_path / "dist", time=TIME)
    assert [path.name for path in again] == [path.name for path in built]
    assert [digest(path) for path in again] == [digest(path) for path in built]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_time_of_the_files_is_the_one_that_was_given(built):
    sdist, _ = built
    with tarfile.open(sdist) as archive:
        assert {member.mtime for member in archive.getmembers()} == {TIME}


def test_the_wheel_has_every_file_of_the_source_and_no_others(built):
    _, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("accord/")}
        about = {name.partition("/")[2] for name in archive.namelist() if not name.startswith("accord/")}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "accord").rglob("*")}
    assert inside == {name for name in source if (ROOT / "src" / name).is_file() and "__pycache__" not in name}
    assert {"accord/py.typed", "accord/inspector/static/index.html", "accord/check/frozen/2026-11.txt"} < inside
    assert about == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_the_sdist_has_no_caches_and_every_file_can_be_read(built):
    sdist, _ = built
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    junk = re.compile(r"__pycache__|\.pyc$|\.pytest_cache|egg-info|\.venv|node_modules|/\.git/|\.trace\.jsonl$")
    assert [member.name for member in members if junk.search(member.name)] == []
    assert [member.name for member in members if not member.mode & stat.S_IROTH] == []
    assert [member.name for member in members if not member.isfile()] == []


def test_the_metadata_says_version_licence_and_python(built):
    _, wheel = built
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        told = HeaderParser().parsestr(archive.read(name).decode())
    assert told["Version"] == accord.__version__
    assert told["Metadata-Version"] == "2.4"
    assert (told["License-Expression"], told.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    assert told["Requires-Python"] == ">=3.11"
    assert told.get_all("Provides-Extra") == sorted(project["optional-dependencies"])


def test_the_changelog_begins_with_the_version():
    [version, *_] = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version == accord.__version__


def test_a_folder_that_is_not_empty_is_not_built_into(tmp_path, capsys):
    (tmp_path / "old.whl").write_text("")
    assert distributions.main([str(tmp_path)]) == 2
    assert "is not empty; empty it or name another" in capsys.readouterr().err
