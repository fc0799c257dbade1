"""`accord info` shows what an agent offers; `accord doctor` checks what the user has set."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import accord
import accord_tools


def test_info_shows_what_an_agent_is_and_offers(user):
    user.write(
        "offering.py",
        "import accord\n"
        "agent = accord.Agent('offering', version='3.1', title='It offers', accepts=['image'])\n"
        "@agent.login('web', 'In the browser')\ndef log_in(): ...\n"
        "agent.on_login_check(lambda: True)\n"
        "@agent.command('draw', 'Draw something')\nasync def draw(turn): ...\n"
        "@agent.on_prompt\nasync def reply(turn): ...\n"
        "@agent.on_session\nasync def begin(session):\n"
        "    await session.modes.offer(['ask', 'go'], current='go')\n"
        "    await session.config.offer('fast', 'Fast', value=True)\n",
    )
    about = json.loads(user.said("info", "--json", "offering.py"))
    assert (about["name"], about["version"], about["title"]) == ("offering", "3.1", "It offers")
    assert about["protocolVersion"] == 1
    assert about["startSeconds"] > 0
    assert about["capabilities"]["promptCapabilities"]["image"] is True
    assert [it["id"] for it in about["authMethods"]] == ["web"]
    session = about["session"]
    assert (session["mode"], [it["id"] for it in session["modes"]]) == ("go", ["ask", "go"])
    assert "fast" in [it["id"] for it in session["configOptions"]]
    assert [it["name"] for it in session["commands"]] == ["draw"]

    shown = [line.split(None, 1) for line in user.said("info", "offering.py").splitlines()]
    text = user.said("info", "offering.py")
    assert ["agent", "offering (It offers) 3.1"] in shown
    for words in (
        "promptCapabilities.image",
        "web (In the browser)",
        "go (current)",
        "= true",
        "/draw: Draw something",
    ):
        assert words in text
    assert "session" not in json.loads(user.said("info", "--json", "--no-session", "offering.py"))


def test_info_leaves_no_session_behind(user):
    store = str(user.home / "sessions.db")
    demo = ["--", sys.executable, "-m", "accord", "demo", "--store", store]
    user.said("info", *demo)
    assert "has no session" in user.said("sessions", "list", "--all", *demo)


def test_doctor_finds_everything_in_order(user):
    user.said("agents", "add", "demo", "--", sys.executable, "-m", "accord", "demo")
    done = user.accord("doctor", "--json")
    found = {it["what"]: it for it in json.loads(done.stdout)}
    assert done.returncode == 0
    assert found["accord"]["detail"].startswith(accord.__version__)
    assert sys.executable in found["python"]["detail"]
    assert found["extra http"]["state"] == "ok"
    assert found["agent demo"] == {"what": "agent demo", "state": "ok", "detail": sys.executable, "do": ""}
    assert found["user's file"] == {"what": "user's file", "state": "ok", "detail": str(user.settings), "do": ""}


def test_doctor_says_what_is_broken_and_what_to_do(user):
    user.set('default = "other"\n[agents.gone]\ncommand = "no-such-program --acp"\n')
    user.set_project('[agents.theirs]\ncommand = "theirs"\n')
    done = user.accord("doctor")
    assert done.returncode == 1
    assert "program not found: no-such-program" in done.stdout
    assert "What must be done:" in done.stdout
    assert "accord agents remove gone" in done.stdout.partition("What must be done:")[2]
    assert f"{user.project_settings} is not trusted" in done.stdout
    assert "'other', which is not an agent" in done.stdout


def test_doctor_lists_plug_ins_and_names_the_distribution_of_a_broken_one(user, tmp_path):
    """As `pip` leaves them: two plug-ins of one distribution, of which one names a function that is missing."""
    information = tmp_path / "site" / "theirs-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.5\n")
    (information / "entry_points.txt").write_text(
        "[accord.stores]\ntheirs = theirs:open_store\n[accord.transports]\ngone = theirs:no_such_function\n"
    )
    (information.parent / "theirs.py").write_text("def open_store(url): ...\n")
    paths = os.pathsep.join([str(information.parent), *filter(None, [user.environment.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "accord", "doctor", "--json"],
        check=False, capture_output=True, text=True, env={**user.environment, "PYTHONPATH": paths},
    )  # fmt: skip
    found = {it["what"]: it for it in json.loads(done.stdout)}
    assert found["plug-in theirs"]["detail"] == "theirs 1.5, in accord.stores"
    assert found["plug-in gone"]["state"] == "broken"
    assert "of the distribution theirs 1.5) cannot be loaded: AttributeError" in found["plug-in gone"]["detail"]
    assert found["plug-in gone"]["do"] == "update or remove theirs"
    assert done.returncode == 1


@pytest.mark.parametrize("text", ["[agents", None])
def test_doctor_reports_a_file_that_cannot_be_used(user, text, tmp_path):
    user.environment["ACCORD_CONFIG"] = str(tmp_path / "set.toml")
    if text is not None:
        (tmp_path / "set.toml").write_text(text)
    done = user.accord("doctor", "--json")
    [broken] = [it for it in json.loads(done.stdout) if it["state"] == "broken"]
    assert done.returncode == 1
    assert (broken["what"], str(tmp_path / "set.toml") in broken["detail"]) == ("user's file", True)


def test_doctor_names_the_command_that_installs_a_missing_extra(user, tmp_path):
    """In an environment that has only Accord and what it needs."""
    site = tmp_path / "site"
    site.mkdir()
    for module in (msgspec, accord, accord_tools):
        package = Path(module.__file__).parent
        shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    user.environment["PYTHONPATH"] = str(site)
    script = "import sys; sys.argv[0] = 'accord'; from accord_tools.cli import main; sys.exit(main(sys.argv[1:]))"

    def doctor(*options: str) -> str:
        words = [sys.executable, "-S", "-c", script, "doctor", *options]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=user.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    short = doctor()
    assert "pip install" not in short
    assert "\nNothing must be done.\n" in short
    said = doctor("--all")
    assert "extra http: pip install 'accord[http]'" in said
    assert "extra mcp: pip install 'accord[mcp]'" in said
