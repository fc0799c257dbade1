"""The sdists and the wheels: the same bytes wherever they are built, and all that they should have."""

import hashlib
import importlib
import os
import re
import stat
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser

import pytest

import accord
from tests import ROOT
from tests.packaging.building import TIME, copied, distributions
from tests.packaging.conftest import REPOSITORY

PACKAGES = distributions.PACKAGES


def test_two_builds_at_different_paths_and_times_are_the_same_bytes(built, tmp_path):
    source = copied(tmp_path / "another" / "place")
    for path in source.rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
            path.chmod(0o600)
    again = distributions.build(source, tmp_path / "dist", time=TIME, repository=REPOSITORY)
    assert [path.name for path in again] == [path.name for path in built]
    assert [digest(path) for path in again] == [digest(path) for path in built]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_time_of_the_files_is_the_one_that_was_given(built):
    for sdist in built[::2]:
        with tarfile.open(sdist) as archive:
            assert {member.mtime for member in archive.getmembers()} == {TIME}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_has_every_file_of_the_source_and_no_others(wheels, package):
    module = package.replace("-", "_")
    with zipfile.ZipFile(wheels[package]) as archive:
        inside = {name for name in archive.namelist() if name.startswith(f"{module}/")}
        about = {name.partition("/")[2] for name in archive.namelist() if not name.startswith(f"{module}/")}
    source = ROOT / "packages" / package / "src"
    files = {path.relative_to(source).as_posix() for path in (source / module).rglob("*") if path.is_file()}
    assert inside == {name for name in files if "__pycache__" not in name}
    assert f"{module}/py.typed" in inside
    assert about - {"entry_points.txt"} == {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"}


def test_the_sdists_have_no_caches_and_every_file_can_be_read(built):
    junk = re.compile(r"__pycache__|\.pyc$|\.pytest_cache|egg-info|\.venv|node_modules|/\.git/|\.trace\.jsonl$")
    for sdist in built[::2]:
        with tarfile.open(sdist) as archive:
            members = archive.getmembers()
        assert [member.name for member in members if junk.search(member.name)] == []
        assert [member.name for member in members if not member.mode & stat.S_IROTH] == []
        assert [member.name for member in members if not member.isfile()] == []


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode())


@pytest.mark.parametrize("package", PACKAGES)
def test_the_metadata_says_version_licence_python_and_the_pages_of_the_project(wheels, package):
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
    told = metadata(wheels[package])
    assert told["Version"] == accord.__version__
    assert importlib.import_module(package.replace("-", "_")).__version__ == accord.__version__
    assert told["Metadata-Version"] == "2.4"
    assert (told["License-Expression"], told.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    assert told["Requires-Python"] == ">=3.11"
    assert told.get_all("Provides-Extra") == sorted(project["optional-dependencies"])
    urls = dict(line.split(", ") for line in told.get_all("Project-URL"))
    assert urls["Repository"] == REPOSITORY
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues", "Protocol"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_readme_of_a_package_has_no_link_to_a_neighbour_that_a_wheel_does_not_have(wheels, package):
    text = metadata(wheels[package]).get_payload()
    assert len(text) > 300
    assert re.findall(r"\]\((?!https://)([^)]+)\)", text) == []


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@git.example:team/accord.git", "https://git.example/team/accord"),
        ("ssh://git@git.example/team/accord", "https://git.example/team/accord"),
        ("https://user:s3cret@git.example/team/accord.git", "https://git.example/team/accord"),
        ("/srv/git/accord", ""),
        ("", ""),
    ],
)
def test_a_remote_becomes_an_address_for_browsers(remote, address):
    assert distributions.browsable(remote) == address


def test_without_an_address_the_metadata_names_the_protocol_only(tmp_path):
    project = tmp_path / "pyproject.toml"
    project.write_text(distributions.URLS)
    distributions.with_urls(project, "")
    assert project.read_text() == distributions.URLS


def test_the_changelog_begins_with_the_version():
    [version, *_] = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version == accord.__version__


def test_a_folder_that_is_not_empty_is_not_built_into(tmp_path, capsys):
    (tmp_path / "old.whl").write_text("")
    assert distributions.main([str(tmp_path)]) == 2
    assert "is not empty; empty it or name another" in capsys.readouterr().err
