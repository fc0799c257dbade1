"""The wheel in clean environments: what works without extras, with each of them, and how a missing one is told.

`make test` tries the wheel without extras in one environment that needs no network. `make release-test` tries every
supported Python with every extra, and installs from the index.
"""

import importlib.util
import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

import accord
from tests import ROOT, SOURCES
from tests.packaging.building import distributions
from tests.packaging.environments import Environment, interpreter, succeeded

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
EXTRAS = {}
"""The extras of all packages, and the package of each; `all` is the one of accord-tools."""
for package in distributions.PACKAGES:
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
    EXTRAS |= dict.fromkeys(project["optional-dependencies"], package)
EXTRAS |= {"all": "accord-tools", "http": "accord"}
IN_ALL = {extra for extra, package in EXTRAS.items() if package in ("accord", "accord-tools")} - {"all"}

SERVED = """
import asyncio, accord, accord.http
from accord_tools.demo import demo_agent
async def main():
    async with accord.http.serving(demo_agent(), port=0) as server:
        async with accord.connect(server.url) as remote:
            session = await remote.new_session("/")
            print((await session.prompt("What is a tool call?")).stop_reason)
asyncio.run(main())
"""
DATABASE = """
import asyncio, accord
async def main():
    try:
        async with accord.PostgresStore("postgresql://127.0.0.1:1/none", patience=0.1) as store:
            await store.page()
    except accord.StoreError as error:
        print("end_turn" if "extra" not in str(error) else error)
asyncio.run(main())
"""
PROGRAMS = {
    "agent": "import accord_tools.coder.coding_agent, anthropic, openai, keyring; print('end_turn')",
    "cli": "import accord_tools.tui.chat_app; print('end_turn')",
    "http": SERVED,
    "http2": "import accord; accord.http.HttpTransport('http://127.0.0.1:1/acp', http2=True); print('end_turn')",
    "mcp": "import accord.mcp.mcp_server; print('end_turn')",
    "otel": "import accord; accord.Spans(); print('end_turn')",
    "patterns": "import re2; import accord.services.form_fields; print('end_turn')",
    "postgres": DATABASE,
    "uvloop": "import accord, asyncio; accord.run(asyncio.sleep(0), uvloop=True); print('end_turn')",
    "claude-agent-sdk": "import accord_adapters; accord_adapters.claude_agent_sdk; print('end_turn')",
    "langgraph": "import accord_adapters; accord_adapters.langgraph; print('end_turn')",
    "llama-index": "import accord_adapters; accord_adapters.llama_index; print('end_turn')",
    "official-sdk": "import accord_adapters; accord_adapters.official_sdk.install(); print('end_turn')",
    "openai-agents": "import accord_adapters; accord_adapters.openai_agents; print('end_turn')",
    "pydantic-ai": "import accord_adapters; accord_adapters.pydantic_ai; print('end_turn')",
    "all": SERVED,
}
"""What uses an extra; each program prints how it went."""

MISSED = ["http", "langgraph", "official-sdk", "openai-agents", "otel", "postgres", "pydantic-ai", "uvloop"]
"""Extras without which their program cannot begin; the others only lack a part."""


@pytest.fixture(scope="session")
def clean(wheels, tmp_path_factory):
    """An environment with all wheels and without extras, which needs no network."""
    environment = Environment(tmp_path_factory.mktemp("clean"))
    environment.install_offline(wheels.values())
    return environment


@pytest.fixture(scope="session")
def library(wheels, tmp_path_factory):
    """An environment with the library alone."""
    environment = Environment(tmp_path_factory.mktemp("library"))
    environment.install_offline([wheels["accord"]])
    return environment


def test_the_library_works_alone_and_says_how_to_get_the_command(library):
    program = "import accord; print(accord.Agent('alone') is not None, accord.__version__)"
    assert succeeded(library.ran([library.python, "-c", program])) == f"True {accord.__version__}\n"
    done = library.ran([library.python, "-m", "accord", "run", "Hello"])
    assert done.returncode != 0
    assert "needs the package 'accord-tools': pip install " in done.stderr
    assert done.stderr.count("\n") == 1


def check_core(environment):
    """What every installation can do: tell its version, and let the command line drive the built-in agent."""
    program = "import accord; accord.Agent; accord.v1.ToolCall; print(accord.__version__, accord.__file__)"
    version, file = succeeded(environment.ran([environment.python, "-c", program])).split(maxsplit=1)
    assert version == accord.__version__
    assert Path(file.strip()).is_relative_to(environment.folder)
    assert succeeded(environment.ran(["accord", "--version"])) == f"accord {version}\n"
    driven = environment.ran(["accord", "run", "--json", "What is a tool call?", "--", "accord", "demo"])
    assert '"end_turn"' in succeeded(driven)


def extras_found(environment):
    """The extras that `accord doctor` finds, and those that it misses."""
    done = succeeded(environment.ran(["accord", "doctor", "--json"]))
    found = {
        it["what"].removeprefix("extra "): it["state"] for it in json.loads(done) if it["what"].startswith("extra")
    }
    return {extra for extra, state in found.items() if state == "ok"}, set(found)


def test_the_wheel_works_in_a_clean_environment(clean):
    check_core(clean)
    assert extras_found(clean) == (set(), set(EXTRAS) - {"all"})


def test_the_wheel_has_the_files_that_are_no_modules(clean):
    program = (
        "import accord, pathlib; home = pathlib.Path(accord.__file__).parent; "
        "import accord_tools; tools = pathlib.Path(accord_tools.__file__).parent; "
        "print((home / 'py.typed').is_file(), (tools / 'inspector/static/index.html').is_file())"
    )
    assert succeeded(clean.ran([clean.python, "-c", program])).split() == ["True", "True"]


@pytest.mark.parametrize("extra", MISSED)
def test_a_program_whose_extra_is_missing_says_how_to_install_it(clean, wheels, extra):
    done = clean.ran([clean.python, "-c", PROGRAMS[extra]])
    wheel, package = wheels["accord"], EXTRAS[extra]
    command = f"'{wheel}[{extra}]'" if package == "accord" else f"--find-links {wheel.parent} '{package}[{extra}]'"
    told = f"needs the extra '{extra}': pip install {command}"
    assert told in (done.stderr or done.stdout)


def test_a_command_whose_extra_is_missing_says_how_to_install_it_in_one_line(clean):
    done = clean.ran(["accord", "info", "http://127.0.0.1:1/acp"])
    assert done.returncode != 0
    assert "needs the extra 'http': pip install " in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_extra_has_a_program_that_uses_it():
    assert set(EXTRAS) == set(PROGRAMS)


@pytest.mark.release
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheels_work_with_each_python(wheels, tmp_path, version):
    environment = Environment(tmp_path, interpreter(version))
    environment.install(wheels)
    check_core(environment)


@pytest.mark.release
@pytest.mark.timeout(900)
@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheels_work_with_each_extra(wheels, tmp_path, version, extra):
    environment = Environment(tmp_path, interpreter(version))
    environment.install(wheels, EXTRAS[extra], extra)
    check_core(environment)
    there, declared = extras_found(environment)
    assert declared >= there >= (IN_ALL if extra == "all" else {extra})
    assert "end_turn" in succeeded(environment.ran([environment.python, "-c", PROGRAMS[extra]]))


@pytest.mark.release
@pytest.mark.parametrize("words", [["uvx", "--from"], ["pipx", "run", "--spec"]], ids=["uvx", "pipx"])
def test_the_command_runs_without_being_installed(wheels, tmp_path, words):
    program = Path(sys.executable).with_name(words[0])
    if words[0] == "pipx" and importlib.util.find_spec("pipx") is None:
        pytest.skip("pipx is not installed: requirements/release.txt has it")
    environment = Environment(tmp_path)
    environment.variables["PIPX_HOME"] = str(tmp_path / "pipx")
    environment.variables |= dict.fromkeys(("UV_FIND_LINKS", "PIP_FIND_LINKS"), str(wheels["accord"].parent))
    tools = wheels["accord-tools"]
    done = environment.ran([program, *words[1:], tools, "accord", "--version"])
    assert succeeded(done) == f"accord {accord.__version__}\n"
    question = ["accord", "run", "What is a tool call?", "--", sys.executable, "-m", "accord", "demo"]
    environment.variables["PYTHONPATH"] = os.pathsep.join(SOURCES)
    assert "tool" in succeeded(environment.ran([program, *words[1:], tools, *question]))


@pytest.mark.release
def test_the_distributions_pass_the_checks_of_an_index(wheels, tmp_path):
    if importlib.util.find_spec("twine") is None:
        pytest.skip("twine is not installed: requirements/release.txt has it")
    environment = Environment(tmp_path)
    files = sorted(wheels["accord"].parent.iterdir())
    told = succeeded(environment.ran([sys.executable, "-m", "twine", "check", "--strict", *files]))
    assert told.count("PASSED") == len(files) == 8
