"""The programs of "coming from FastMCP", in an environment with the wheel and FastMCP."""

import re

import pytest

from tests import ROOT
from tests.packaging.environments import UV, Environment, succeeded

PAGE = ROOT / "docs" / "coming-from" / "fastmcp.md"
BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.release
@pytest.mark.timeout(900)
def test_an_agent_calls_the_tool_of_a_fastmcp_server(wheels, tmp_path):
    server, program = BLOCK.findall(PAGE.read_text())
    place = Environment(tmp_path / "fastmcp")
    place.install(wheels, "accord", "mcp")
    succeeded(place.ran([UV, "pip", "install", "--quiet", "--python", place.python, "fastmcp"]))
    (place.home / "adding.py").write_text(server)
    (place.home / "calculator.py").write_text(program)
    assert succeeded(place.ran([place.python, "calculator.py"])) == "5\n"
