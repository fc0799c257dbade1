"""The programs of docs/from-the-official-sdk.md: both styles of agent and client work with each other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "from-the-official-sdk.md").read_text()
SDK_AGENT, OUR_AGENT, SDK_CLIENT, OUR_CLIENT, _SERVER = re.findall(
    r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("agent", [SDK_AGENT, OUR_AGENT], ids=["the SDK's agent", "our agent"])
@pytest.mark.parametrize("client", [SDK_CLIENT, OUR_CLIENT], ids=["the SDK's client", "our client"])
def test_each_client_of_the_page_drives_each_agent(tmp_path, client, agent):
    (tmp_path / "agent.py").write_text(agent)
    (tmp_path / "client.py").write_text(client)
    (tmp_path / "notes.txt").write_text("one two three")
    command = [sys.executable, "client.py", sys.executable, "agent.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout == "3 words\nend_turn\n", done.stderr


def test_the_sdk_s_programs_of_the_page_are_its_own_but_for_the_import(tmp_path):
    theirs = [
        text.replace("from accord.compat import acp", "import acp").replace("accord.compat.acp", "acp")
        for text in (SDK_CLIENT, SDK_AGENT)
    ]
    for name, text in zip(("client.py", "agent.py"), theirs, strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "notes.txt").write_text("one two three")
    command = [sys.executable, "client.py", sys.executable, "agent.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout == "3 words\nend_turn\n", done.stderr
