"""Which frameworks the tests of this folder run with, and what is said of one that is not installed."""

import subprocess
import sys

import pytest

import accord_adapters
from tests.adapters.conftest import FRAMEWORKS, is_installed


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_framework_is_there(framework):
    if not is_installed(framework):
        pytest.skip(f"{framework} is not installed: make test-adapters")
    module = getattr(accord_adapters, framework)
    assert callable(module.serve)
    assert callable(module.tool)


def test_a_framework_that_is_not_installed_is_named_with_its_extra():
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "import accord, accord_adapters\n"
        "try: accord_adapters.pydantic_ai\n"
        "except accord.AccordError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs the extra 'pydantic-ai'" in done.stdout


def test_the_adapters_load_no_framework_before_they_are_used():
    code = "import sys, accord_adapters as it; dir(it); print('pydantic_ai' in sys.modules, 'openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_adapters_are_these():
    assert dir(accord_adapters) == sorted([*FRAMEWORKS, "current_turn", "official_sdk"])
