"""Our own coding agent as an entry of a registry."""

import sys

PROGRAM = f"""#!{sys.executable}
import sys
from accord_tools.cli import main
sys.exit(main(["agent", *sys.argv[1:]]))
"""


def test_the_coding_agent_passes_the_verification_of_the_registry(user, registry):
    registry.add_archive("accord-agent", {"a": PROGRAM}, "./a")
    said = user.said("agents", "verify", "accord-agent")
    assert "login: api-key (terminal)" in said
