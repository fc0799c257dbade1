"""Extras: each package is declared where it is imported, and whoever lacks one reads the command that installs it."""

import functools
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from accord import installation
from tests import PACKAGES, ROOT, SOURCES

EXTRAS = {}
"""What each extra installs, of all packages."""
for package in PACKAGES:
    declared = tomllib.loads((package / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    EXTRAS |= {extra: needs for extra, needs in declared.items() if extra != "all" and package.name != "accord-check"}
DISTRIBUTIONS = {
    "agent-client-protocol": "acp",
    "claude-agent-sdk": "claude_agent_sdk",
    "google-re2": "re2",
    "llama-index-core": "llama_index",
    "markdown-it-py": "markdown_it",
    "openai-agents": "agents",
    "pillow": "PIL",
    "opentelemetry-api": "opentelemetry",
    "pydantic-ai-slim": "pydantic_ai",
}
"""Distributions whose package has another name."""
PARTS = {
    "mcp_types": "mcp",
    "pydantic": "mcp",
    "pydantic_core": "acp",
    "anyio": "mcp",
    "uvicorn": "mcp",
    "langchain_core": "langgraph",
}
"""Packages that come with another one."""
GIVEN = {"httpx"}
"""Packages of whose classes programs pass objects to Accord: they are installed where they are used."""


def required(extra):
    """The packages that an extra installs, besides those of an extra that it includes."""
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in EXTRAS[extra]]
    return {DISTRIBUTIONS.get(name, name) for name in names if not name.startswith("accord")}


IMPORT = re.compile(r"^ *(?:import (\w+)|from (\w+)[\w.]* import )|importlib\.import_module\(\"(\w+)", re.MULTILINE)


@functools.cache
def imported():
    """The packages that Accord's source imports, besides the standard library and the core's own."""
    texts = (path.read_text() for source in SOURCES for path in Path(source).rglob("*.py"))
    found = {name for text in texts for names in IMPORT.findall(text) for name in names if name}
    # Only pytest loads the plugin, so pytest is there; PACKAGE stands in a template.
    return (
        found
        - set(sys.stdlib_module_names)
        - {"accord", "accord_adapters", "accord_check", "accord_tools"}
        - {"msgspec", "_typeshed", "typing_extensions", "pytest", "PACKAGE"}
    )


def test_every_package_that_is_imported_belongs_to_an_extra():
    assert {PARTS.get(name, name) for name in imported() - GIVEN} <= set().union(*map(required, EXTRAS))
    assert imported() - set(installation.PACKAGES) - GIVEN == {"pydantic", "pydantic_core", "anyio", "uvicorn"}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_installs_nothing_that_is_not_imported(extra):
    assert required(extra) - imported() == set()
    ours = {package for package, of in installation.PACKAGES.items() if of == extra and package not in PARTS}
    assert ours == required(extra)


@pytest.mark.parametrize("package", ["accord", "accord-tools"])
def test_all_stands_for_every_extra_of_a_package(package):
    declared = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    assert f"{package}[{','.join(sorted(set(extras) - {'all'}))}]" in extras["all"]


@pytest.mark.parametrize("target", ["test-oldest", "test-newest"])
def test_the_oldest_and_the_newest_releases_of_every_extra_are_tested(target):
    commands = subprocess.run(["make", "-n", target], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    tested = re.findall(r"(accord[\w-]*)\[([\w,-]+)\]", commands)
    extras = {extra for package, names in tested for extra in names.split(",") if (package, extra) != ("accord", "all")}
    of_library = tomllib.loads((ROOT / "packages/accord/pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert ("accord", "all") in tested
    assert extras == EXTRAS.keys() - of_library.keys()


def test_each_extra_names_the_package_that_has_it():
    for extra in EXTRAS:
        declared = tomllib.loads(
            (ROOT / "packages" / installation.DISTRIBUTIONS.get(extra, "accord") / "pyproject.toml").read_text()
        )
        assert extra in declared["project"]["optional-dependencies"]


USES = {
    "accord.http.HttpTransport('http://127.0.0.1:1/acp')": "http",
    "accord.http.connect_transport('ws://127.0.0.1:1/acp')": "http",
    "asyncio.run(connected('http://127.0.0.1:1/acp'))": "http",
    "asyncio.run(serving())": "http",
    "accord.Spans()": "otel",
    "accord.run(asyncio.sleep(0), uvloop=True)": "uvloop",
}

PROGRAM = """
import asyncio, sys
sys.modules.update(dict.fromkeys({packages!r}))
import accord, accord.http
agent = accord.Agent("a")
agent.on_prompt(lambda _: None)
async def connected(url):
    async with accord.connect(url): pass
async def serving():
    async with accord.http.serving(agent, port=0): pass
for use in {uses!r}:
    try:
        eval(use)
    except accord.AccordError as error:
        print(error)
"""


def test_using_an_extra_that_is_missing_prints_the_command_that_installs_it():
    program = PROGRAM.format(packages=sorted(installation.PACKAGES), uses=list(USES))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    said = done.stdout.splitlines()
    assert len(said) == len(USES), done.stderr
    for line, (use, extra) in zip(said, USES.items(), strict=True):
        assert f"needs the extra '{extra}': {installation.install_command(extra)}" in line, use


ORIGINS = {
    "an index": (None, "pip install 'accord[mcp]'"),
    "a folder": ({"url": "file:///home/me/my%20accord", "dir_info": {}}, "pip install '/home/me/my accord[mcp]'"),
    "a folder, to work on it": (
        {"url": "file:///home/me/accord", "dir_info": {"editable": True}},
        "pip install -e '/home/me/accord[mcp]'",
    ),
    "a repository": (
        {"url": "https://git.example/accord.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
        "pip install 'accord[mcp] @ git+https://git.example/accord.git'",
    ),
}


@pytest.mark.parametrize("name", ORIGINS)
def test_the_command_fits_the_way_in_which_accord_was_installed(tmp_path, monkeypatch, name):
    origin, command = ORIGINS[name]
    installed = tmp_path / "accord-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: accord\nVersion: 0.1.0\n")
    if origin is not None:
        (installed / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert installation.install_command("mcp") == command


PACKAGE_ORIGINS = {
    "an index": (None, "pip install accord-check"),
    "a folder": ({"url": "file://{}/accord", "dir_info": {"editable": True}}, "pip install -e {}/accord-check"),
    "a wheel": (
        {"url": "file://{}/accord-0.1.0-py3-none-any.whl", "archive_info": {}},
        "pip install --find-links {} accord-check",
    ),
    "a repository": (
        {"url": "https://git.example/a.git", "vcs_info": {"vcs": "git"}, "subdirectory": "packages/accord"},
        "pip install 'accord-check @ git+https://git.example/a.git#subdirectory=packages/accord-check'",
    ),
}


@pytest.mark.parametrize("name", PACKAGE_ORIGINS)
def test_another_package_of_ours_is_installed_from_where_this_one_is(tmp_path, monkeypatch, name):
    origin, command = PACKAGE_ORIGINS[name]
    (tmp_path / "accord-check").mkdir()
    installed = tmp_path / "accord-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: accord\nVersion: 0.1.0\n")
    if origin is not None:
        (installed / "direct_url.json").write_text(json.dumps(origin).replace("{}", str(tmp_path), 1))
    monkeypatch.syspath_prepend(tmp_path)
    missing = installation.missing_package("accord-check", "it")
    assert str(missing) == f"it needs the package 'accord-check': {command.format(tmp_path)}"


def test_the_command_of_a_checkout_that_was_not_installed_names_its_folder(monkeypatch):
    paths = [path for path in sys.path if path and not list(Path(path).glob("accord-*.dist-info"))]
    monkeypatch.setattr(sys, "path", paths)
    importlib.invalidate_caches()
    assert installation.install_command("mcp") == f"pip install -e '{ROOT}/packages/accord[mcp]'"


def test_the_page_about_installing_lists_every_extra():
    page = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(r"^\| `accord[^|]*\| (`[^|]+`) \| [^|]+ \|$", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == {*EXTRAS, "all"}
