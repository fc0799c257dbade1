"""Commands of other distributions: what a broken one does, and what the start of others costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import accord
import accord_check
import accord_tools
from accord_tools.cli import command

GOOD = """
import sys
from accord_tools.cli.command import ENDED_WELL, Command, print_line

def run(options):
    print_line("good, without " + ", ".join(sorted({"bad", "good"} - set(sys.modules))))
    return ENDED_WELL

COMMAND = Command("Do good.", lambda parser: None, run)
"""
BAD = {
    "an import that fails": ("import nothing_like_it\n", "cannot be loaded: ModuleNotFoundError: No module named"),
    "a module that exits": ("raise SystemExit('no')\n", "cannot be loaded: SystemExit: no"),
    "an object that is no command": ("COMMAND = 1\n", "must be a Command of accord_tools.cli.command, got 1"),
}


@pytest.fixture
def install(user, tmp_path):
    """Installs a distribution with one module that adds one command, as pip would leave it."""
    user.environment["PYTHONPATH"] = str(tmp_path / "site")

    def install(module, text, command):
        metadata = tmp_path / "site" / f"accord_{module}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: accord-{module}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[accord.commands]\n{command} = {module}:COMMAND\n")
        (tmp_path / "site" / f"{module}.py").write_text(text)

    return install


@pytest.mark.parametrize("what", BAD)
def test_a_broken_plug_in_is_named_in_one_line_and_breaks_no_other_command(user, install, what):
    text, reason = BAD[what]
    install("bad", text, "bad")
    install("good", GOOD, "good")
    done = user.accord("bad", "--anything")
    assert done.returncode == 1
    assert done.stderr.startswith("accord: the plug-in 'bad' of accord.commands (bad:COMMAND, of the distribution")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1

    helped = user.accord("--help")
    assert helped.returncode == 0
    assert helped.stderr == done.stderr
    assert re.search(r"\nadded by other packages:\n  good +Do good\.\n", helped.stdout)
    assert user.said("good") == "good, without bad\n"
    assert user.said("__complete", "bad", "") == ""


def test_a_plug_in_whose_options_fail_is_named_in_one_line(user, install):
    install("bad", GOOD.replace("lambda parser: None", "lambda parser: parser.missing()"), "bad")
    for done in (user.accord("bad"), user.accord("help", "bad")):
        assert done.returncode == 1
        assert "the plug-in 'bad' of accord.commands (bad:COMMAND, of the distribution accord-bad 1.0)" in done.stderr
        assert done.stderr.count("\n") == 1
    assert user.said("--help").count("Do good.") == 1


def test_a_plug_in_cannot_take_the_place_of_an_own_command(user, install):
    install("bad", GOOD, "schema")
    assert "JSON Schema" in user.said("schema", "--help")
    helped = user.accord("--help")
    assert "is not used: accord has a command of this name" in helped.stderr
    assert "Do good." not in helped.stdout


def test_own_commands_and_the_version_read_no_entry_points():
    script = (
        "import sys; from accord_tools.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print('importlib.metadata' in sys.modules, file=sys.stderr)"
    )
    for arguments, reads in ((["run", "--help"], False), (["--version"], False), (["--help"], True)):
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.stderr == f"{reads}\n"


def test_the_guide_lists_every_public_name_for_commands():
    page = (Path(__file__).parents[4] / "docs" / "command-line.md").read_text()
    section = page.partition("## Custom commands")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)[^`]*`", section))
    assert set(command.__all__) - named == set()


@pytest.fixture
def python_without(user, tmp_path):
    """Runs Python where Accord is there without one of its packages; `-S` leaves out all that is installed."""

    def run(left_out, *arguments):
        site = tmp_path / "site"
        site.mkdir()
        for package in (accord, accord_check, accord_tools, msgspec):
            if package.__name__ != left_out:
                (site / package.__name__).symlink_to(Path(package.__file__).parent)
        user.environment["PYTHONPATH"] = str(site)
        return subprocess.run(
            [sys.executable, *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=user.folder,
            env=user.environment,
        )

    return run


def test_without_the_checker_its_command_says_how_to_get_it(python_without):
    done = python_without("accord_check", "-S", "-m", "accord", "check", "agent")
    assert done.returncode == 1
    assert done.stderr == "accord: the command 'check' needs the package 'accord-check': pip install accord-check\n"


def test_without_the_checker_the_help_does_not_list_it(python_without):
    done = python_without("accord_check", "-S", "-m", "accord", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  chat " in done.stdout
    assert "  check " not in done.stdout


WITHOUT = "import sys; sys.modules[{!r}] = None\n"
"""Makes a package that is installed impossible to import."""

VERIFY = """
import importlib, pkgutil
for room in ("cli", "inspector", "tui"):
    package = importlib.import_module(f"accord_tools.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
from accord_tools.cli import main
print(main(["agents", "verify", "anything"]))
"""


def test_without_the_checker_all_other_modules_load_and_a_verification_says_how_to_get_it(python_without):
    done = python_without("accord_check", "-c", WITHOUT.format("accord_check") + VERIFY)
    assert done.stdout == "1\n", done.stderr
    assert done.stderr.startswith(
        "accord agents: `accord agents verify` without --no-check needs the package 'accord-check': pip install "
    )
    assert done.stderr.count("\n") == 1


CHECKER = """
import importlib, pkgutil
import accord_check
for module in pkgutil.walk_packages(accord_check.__path__, "accord_check."):
    if not module.name.startswith("accord_check.command"):
        importlib.import_module(module.name)
print(*(getattr(accord_check, name) for name in accord_check.__all__))
"""


def test_without_the_command_line_the_checker_is_a_library(python_without):
    done = python_without("accord_tools", "-c", WITHOUT.format("accord_tools") + CHECKER)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_command_line_the_library_says_how_to_get_it(python_without):
    done = python_without("accord_tools", "-S", "-m", "accord", "--help")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "accord: the command line needs the package 'accord-tools': pip install accord-tools\n"
