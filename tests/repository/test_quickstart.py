"""The quickstart, followed literally in an empty folder: what it says to save is saved, what it says to run is run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import accord

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
BLOCK = re.compile(
    r"(?:Save this as `(?P<name>[\w.]+)`[^`]*)?^```(?P<kind>sh|python|text)\n(?P<body>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def test_the_quickstart_works_when_it_is_followed_literally(tmp_path):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "home" / "config"),
    }
    said, setting, done = "", "", 0
    for block in BLOCK.finditer(PAGE.read_text()):
        match block["kind"]:
            case "python":
                assert block["name"], "every program of the quickstart says where to save it"
                (tmp_path / block["name"]).write_text(block["body"])
            case "sh":
                result = subprocess.run(
                    ["sh", "-e", "-c", block["body"]],
                    cwd=tmp_path,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=100,
                )
                assert result.returncode == 0, result.stderr
                said = result.stdout
                if "agent_servers" in said:
                    setting = said[said.index("{") :]
            case "text":
                assert said == block["body"]
        done += 1
    assert done == 10
    assert (tmp_path / "hello.txt").read_text() == "hello\n"
    shouts_in_an_editor(json.loads(setting), tmp_path, environment)


def shouts_in_an_editor(setting, folder, environment):
    """The setting that the page prints starts the agent, in another folder and without the environment."""
    agent = setting["agent_servers"]["shouting"]
    without = {**environment, "PATH": os.defpath}
    client = accord.Client(files=True, permissions=lambda _: True)
    with accord.sync.connect([agent["command"], *agent["args"]], client, cwd="/", env=without) as remote:
        assert remote.new_session(folder).prompt("hello.txt").text == "I made hello.txt louder."
    assert (folder / "hello.txt").read_text() == "HELLO\n"
