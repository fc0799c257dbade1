"""`python -m accord.compat.acp`: a program of the official SDK on our engine, unchanged."""

import subprocess
import sys

import pytest

PRINTS = """\
import acp, acp.schema, acp.contrib, sys
print(acp.__name__, acp.schema.TextContentBlock.__module__, sys.argv[1:])
"""


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "accord.compat.acp", *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.mark.parametrize("named", [["program.py"], ["-m", "program"]], ids=["file", "module"])
def test_a_program_gets_our_modules_as_acp(named, tmp_path):
    (tmp_path / "program.py").write_text(PRINTS)
    done = run(*named, "-x", "y", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("accord.compat.acp accord.compat.acp.schema ['-x', 'y']\n", "")


def test_a_program_that_is_not_there_is_named(tmp_path):
    done = run("nothing.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("nothing.py is not a file; usage: python -m accord.compat.acp")


def test_the_official_package_is_not_replaced_once_it_is_imported(tmp_path):
    code = "import acp\nfrom accord.compat.acp.aliases import install\ninstall()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "RuntimeError: acp was imported already: call accord.compat.acp.aliases.install() before that" in done.stderr
