"""What is published: the sdist has its tests, and the wheel's README leads somewhere."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://git.example/accord"
specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
hatch_build = importlib.util.module_from_spec(specification)
specification.loader.exec_module(hatch_build)


def build(kind, source, target, **more):
    """Build a distribution from a folder; gives its path."""
    environment = {**{k: v for k, v in os.environ.items() if k != "ACCORD_REPOSITORY"}, **more}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, check=True, capture_output=True, cwd=source, env=environment, timeout=100)
    [path] = target.iterdir()
    return path


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The folder of an sdist that was built where the repository's address is known."""
    folder = tmp_path_factory.mktemp("sdist")
    path = build("sdist", ROOT, folder / "dist", ACCORD_REPOSITORY=REPOSITORY)
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return folder / path.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def metadata(unpacked, tmp_path_factory):
    """The metadata of a wheel that was built from the sdist, where nothing tells the repository's address."""
    path = build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))
    with zipfile.ZipFile(path) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode())


def test_the_readme_of_a_wheel_has_no_link_to_a_neighbour(metadata):
    links = re.findall(r"\]\(([^)]+)\)", metadata.get_payload())
    assert f"{REPOSITORY}/blob/HEAD/docs/quickstart.md" in links
    assert [link for link in links if not link.startswith("https://")] == []


def test_every_link_of_the_readme_to_the_repository_is_a_file_of_it(metadata):
    links = re.findall(rf"\]\({REPOSITORY}/blob/HEAD/([^)#]+)", metadata.get_payload())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_a_wheel_names_the_projects_pages(metadata):
    told = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert told["Repository"] == REPOSITORY
    assert {"Documentation", "Changelog", "Issues", "Protocol"} < set(told)


def test_an_sdist_has_what_its_tests_need(unpacked):
    needed = {
        "Makefile",
        "requirements",
        "tests",
        "tools",
        "docs",
        "examples",
        "benchmarks",
        "interop",
        "hatch_build.py",
    }
    assert needed <= {path.name for path in unpacked.iterdir()}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(unpacked / "src"), str(unpacked)])}
    tests = [
        "tests/repository/test_module_tables.py",
        "packages/accord/tests/jsonrpc/test_frames.py",
        "packages/accord/tests/agent/test_consent.py",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=110, cwd=unpacked, env=environment
    )
    assert done.returncode == 0, done.stdout


def test_without_an_address_links_become_text():
    text = "See the [guide](docs/a.md), ![chart](docs/b.svg) and [the protocol](https://agentclientprotocol.com)."
    assert hatch_build.with_absolute_links(text, None) == (
        "See the guide, chart and [the protocol](https://agentclientprotocol.com)."
    )


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@git.example:team/accord.git", "https://git.example/team/accord"),
        ("ssh://git@git.example/team/accord", "https://git.example/team/accord"),
        ("https://user:s3cret@git.example/team/accord.git", "https://git.example/team/accord"),
        ("/srv/git/accord", None),
        ("", None),
    ],
)
def test_a_remote_becomes_an_address_for_browsers(remote, address):
    assert hatch_build.browsable(remote) == address


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted((ROOT / "examples").rglob("*.py"))]
INSTALLS = re.compile(r"pip install '?accord\b")


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if INSTALLS.search(page.read_text())]
)
def test_a_page_that_installs_accord_says_how_to_do_it_from_the_source(page):
    assert re.search(r"from\s+the\s+source", page.read_text(), re.IGNORECASE)
    assert re.search(r"'?\./accord\b|'/path/to/accord\b", page.read_text())
