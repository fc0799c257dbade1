"""For authors: entries are checked by the registry's rules, built into its files, and tried as it tries them."""

from __future__ import annotations

import copy
import json
import sys

import pytest

from accord_tools.registry.entry import here as this_platform
from accord_tools.registry.entry_rules import SKELETON, check_entry, check_icon

URL = "https://github.com/me/good/releases/download/v1.2.3/good-{}.tar.gz"
GOOD = {
    "id": "good",
    "name": "Good",
    "version": "1.2.3",
    "description": "A good agent",
    "repository": "https://github.com/me/good",
    "license": "MIT",
    "authors": ["Me"],
    "distribution": {
        "binary": {
            key: {"archive": URL.format(key), "cmd": "./good", "args": ["acp"], "sha256": "0" * 64}
            for key in ("darwin-aarch64", "linux-x86_64")
        }
        | {"windows-x86_64": {"archive": URL.format("w"), "cmd": ".\\bin\\good.exe", "sha256": "a" * 64}},
        "npx": {"package": "@me/good@1.2.3", "args": ["--acp"], "env": {"A": "1"}, "cmd": "good"},
        "uvx": {"package": "good==1.2.3"},
    },
    "preview": {"version": "1.3.0-preview.2", "distribution": {"npx": {"package": "@me/good@1.3.0-preview.2"}}},
}
LINUX = "distribution.binary.linux-x86_64"


def changed(path, value):
    """The good entry with another value at this path; None removes it."""
    entry = copy.deepcopy(GOOD)
    *above, last = path.split(".")
    place = entry
    for part in above:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return entry


def test_a_good_entry_has_no_findings():
    assert check_entry(GOOD, "good", "good/agent.json") == []


WRONG = {
    "id": ("Good", "must have lower-case letters"),
    "name": ("", "must be a text that is not empty"),
    "description": (None, "is missing"),
    "version": ("1.2", "must begin with three numbers"),
    "repository": ("github.com/me", "must be an address"),
    "authors": ("me", "must be a list of texts"),
    "distribution": ({}, "must be an object with 'binary', 'npx' or 'uvx'"),
    "distribution.docker": ({"image": "x"}, "must be binary, npx or uvx"),
    "distribution.binary.plan9-mips": ({"archive": URL, "cmd": "./a", "sha256": "0" * 64}, "is not a platform"),
    f"{LINUX}.archive": ("http://example.com/v1.2.3/a.zip", "must begin with https://"),
    f"{LINUX}.cmd": ("../good", "must be a relative path inside of the archive"),
    f"{LINUX}.sha256": ("abc", "must have 64 hexadecimal digits"),
    f"{LINUX}.note": ("x", "is not a key here; known are archive, args, cmd, env, sha256"),
    f"{LINUX}.args": (["a", 1], "must be a list of texts"),
    f"{LINUX}.env": ({"A": 1}, "must be an object of texts"),
    "distribution.npx.package": ("@me/good@latest", "must name a version"),
    "distribution.uvx.package": ("good==1.2.4", "names the version 1.2.4, and the entry has 1.2.3"),
    "preview": ({"version": "1.3.0"}, "must have 'version' and 'distribution', and nothing else"),
    "preview.version": ("1.3.0-beta", "must be X.Y.Z-preview.N or X.Y.Z"),
    "preview.distribution.binary": ({}, "must be npx or uvx in a preview"),
}


@pytest.mark.parametrize("path", WRONG)
def test_each_rule_is_reported_with_the_path_of_the_value(path):
    value, message = WRONG[path]
    found = check_entry(changed(path, value), None, "good/agent.json")
    assert any(it.path == path and message in it.message and it.level == "error" for it in found), found


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{LINUX}.archive", URL.format("x").replace("v1.2.3", "v1.2.2"), "names the version 1.2.2"),
        (f"{LINUX}.archive", "https://example.com/latest/a.zip", "must name a version, not /latest/"),
        (f"{LINUX}.archive", "https://example.com/v1.2.3/a.AppImage", "not an installer"),
        ("distribution.npx.package", "a b", "must be like @scope/name@1.2.3"),
    ],
)
def test_archives_and_packages_are_those_of_the_entry_s_version(path, value, message):
    found = check_entry(changed(path, value), None, "f")
    assert [it.path for it in found if message in it.message] == [path]


@pytest.mark.parametrize(
    ("path", "value", "at"),
    [
        ("license", None, "license"),
        (f"{LINUX}.sha256", None, f"{LINUX}.sha256"),
        ("distribution.binary.windows-x86_64", None, "distribution.binary"),
        (f"{LINUX}.cmd", "good", f"{LINUX}.cmd"),
        ("distribution.npx.package", "@me/good", "distribution.npx.package"),
    ],
)
def test_what_the_registry_only_warns_of_is_a_warning(path, value, at):
    found = check_entry(changed(path, value), None, "f")
    assert [(it.path, it.level) for it in found] == [(at, "warning")]


def test_an_id_is_the_name_of_its_folder():
    [found] = check_entry(GOOD, "other", "other/agent.json")
    assert str(found) == "other/agent.json: id: error: must be the name of its folder, 'other'; got 'good' [id]"


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_what_is_not_an_object_is_one_finding(value):
    assert len(check_entry(value, None, "f")) == 1


SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{}</svg>'
PATH = '<path d="M0 0" fill="currentColor"/>'
ICONS = {
    "<svg": "must be well-formed XML",
    "<png/>": "must have the root element svg",
    SVG.format(PATH + "<!-- by me -->"): "must have no comments",
    SVG.replace("0 0 16 16", "0 0 24 24").format(PATH): "must be 16 by 16, got 24 by 24",
    SVG.replace('viewBox="0 0 16 16"', 'width="16" height="8"').format(PATH): "must be 16 by 16, got 16 by 8",
    SVG.replace(' viewBox="0 0 16 16"', "").format(PATH): "must say its size",
    SVG.format(PATH + '<path fill="#F50"/>'): "got fill=#F50",
    SVG.format(PATH + '<path style="stroke: red"/>'): "got stroke=red",
    SVG.format(PATH + "<style>path{fill:url(#a)}</style>"): "got fill=url(#a)",
    SVG.format('<path d="M0 0"/>'): "must use currentColor",
    f'<!DOCTYPE svg [<!ENTITY a "b">]>{SVG.format(PATH)}': "must not declare entities",
    " " * 70_000: "must have at most 65,536 bytes",
}


@pytest.mark.parametrize("text", ICONS, ids=range(len(ICONS)))
def test_an_icon_that_the_registry_refuses_is_refused_with_the_reason(text):
    found = check_icon(text.encode(), "icon.svg")
    assert any(ICONS[text] in finding.message for finding in found), found


@pytest.mark.parametrize(
    "text",
    [
        SKELETON,
        SVG.format(PATH),
        SVG.format('<g style="fill:none;stroke:CURRENTCOLOR"><path fill="inherit"/></g>'),
        SVG.format("<style>.a { fill: currentColor }</style>"),
        SVG.replace("<svg", '<svg width="16px" height="16"').format(PATH),
    ],
)
def test_a_good_icon_has_no_findings(text):
    assert check_icon(text.encode(), "icon.svg") == []


# The commands


@pytest.fixture
def sources(user):
    """A registry's folder with one good agent."""
    return publish(user.folder / "agents", GOOD)


def publish(folder, entry):
    place = folder / entry["id"]
    place.mkdir(parents=True)
    (place / "agent.json").write_text(json.dumps(entry))
    (place / "icon.svg").write_text(SKELETON)
    return folder


def test_check_prints_findings_as_text_json_and_sarif(user, sources):
    assert user.said("agents", "check", "agents") == "1 agent, 0 errors, 0 warnings\n"
    publish(sources, changed("version", "1.2.4") | {"id": "bad"})
    (sources / "bad" / "icon.svg").unlink()
    (sources / "_later" / "x").mkdir(parents=True)
    done = user.accord("agents", "check", "agents")
    assert done.returncode == 1
    assert f"bad/agent.json: {LINUX}.archive: error: names the version 1.2.3" in done.stdout
    assert "bad/agent.json: error: needs an icon" in done.stdout
    findings = json.loads(user.accord("agents", "check", "agents", "--format", "json").stdout)
    assert {finding["rule"] for finding in findings} == {"version", "icon"}
    sarif = json.loads(user.accord("agents", "check", "agents/bad", "--format", "sarif").stdout)
    assert sarif["version"] == "2.1.0"
    assert sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "agent.json"
    assert "does not exist" in user.refused("agents", "check", "absent")


def test_two_agents_of_one_id_are_an_error(user, sources):
    (sources / "second").mkdir()
    (sources / "second" / "agent.json").write_text(json.dumps(GOOD))
    assert "must be unique, and good/agent.json has it too" in user.accord("agents", "check", "agents").stdout


def test_check_online_reports_addresses_that_do_not_answer(user, registry):
    there, gone = f"{registry.address}/registry.json", f"{registry.address}/gone"
    publish(
        user.folder / "agents",
        changed("repository", there) | {"website": gone, "distribution": {"npx": GOOD["distribution"]["npx"]}},
    )
    out = user.accord("agents", "check", "agents", "--online").stdout
    assert f"website: error: {gone} answered 404" in out
    assert "repository" not in out


def test_build_gives_the_same_bytes_from_the_same_sources(user, sources):
    publish(sources, {**GOOD, "id": "another"})
    assert "with 2 agents, and 2 icons" in user.said("agents", "build", "agents", "-o", "dist")
    user.said("agents", "build", "agents", "-o", "again", "--icons-at", "")
    assert (user.folder / "dist" / "registry.json").read_bytes() == (
        user.folder / "again" / "registry.json"
    ).read_bytes()
    built = json.loads((user.folder / "dist" / "registry.json").read_text())
    assert [agent["id"] for agent in built["agents"]] == ["another", "good"]
    assert "preview" not in built["agents"][0]
    assert built["agents"][1]["icon"] == "good.svg"
    assert (user.folder / "dist" / "good.svg").read_text() == SKELETON
    user.environment["ACCORD_REGISTRY"] = str(user.folder / "dist")
    assert "another" in user.said("agents", "search")


def test_build_writes_nothing_from_sources_with_errors(user, sources):
    publish(sources, {**GOOD, "id": "bad", "version": "x"})
    done = user.accord("agents", "build", "agents")
    assert done.returncode == 1
    assert "nothing was built" in done.stderr
    assert not (user.folder / "dist").exists()


def test_new_writes_an_entry_that_passes_the_check(user):
    user.said("agents", "new", "my-agent", "--npx", "@me/my-agent@0.3.0")
    assert user.said("agents", "check", ".").startswith("1 agent, 0 errors")
    assert "accord agents check" in (user.folder / ".github" / "workflows" / "agents.yml").read_text()
    user.said("agents", "new", "second")
    assert user.accord("agents", "check", "second").returncode == 0
    assert "exists; choose another id" in user.refused("agents", "new", "second")
    assert "must name a package and its version" in user.refused("agents", "new", "third", "--uvx", "a b")


AGENT = f"""#!{sys.executable}
import json, sys
request = json.loads(sys.stdin.readline())
BODY
"""
ANSWER = (
    'print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"protocolVersion": 1, METHODS}}), flush=True)'
)
LOGIN = '"authMethods": [{"id": "key", "name": "Key"}]'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            ANSWER.replace("METHODS", '"authMethods": []'),
            "must offer a login method of the type agent or terminal, got none",
        ),
        (
            ANSWER.replace("METHODS", '"authMethods": [{"id": "v", "type": "env_var"}]'),
            "must offer a login method of the type agent or terminal, got v (env_var)",
        ),
        ("print('Welcome!', flush=True)", "its first line of standard output must be JSON, got b'Welcome!"),
        ("print('[]', flush=True)", "its first line of standard output must be a JSON object"),
        ("print(json.dumps({'error': {'code': -1}}), flush=True)", 'answered with an error: {"code": -1}'),
        ("sys.exit('no licence')", "ended with exit code 1 before it answered, and wrote:\n  no licence"),
    ],
)
def test_verify_says_why_the_registry_would_refuse_an_agent(user, registry, body, says):
    registry.add_archive("a", {"a": AGENT.replace("BODY", body)}, "./a")
    done = user.accord("agents", "verify", "a")
    assert done.returncode == 1
    assert says in done.stdout


def test_verify_asks_an_agent_in_a_home_of_its_own_and_removes_it(user, registry):
    home = "import os; open(os.environ['HOME'] + '/mark', 'x'); assert 'ACCORD_REGISTRY' not in os.environ"
    registry.add_archive("a", {"a": AGENT.replace("BODY", f"{home}\n{ANSWER.replace('METHODS', LOGIN)}")}, "./a")
    said = user.said("agents", "verify", "a", "--no-check")
    assert said.startswith("a 1.0.0 as binary: answered after ")
    assert "login: key (agent)" in said
    assert not (user.home / "mark").exists()
    assert "No agent has a name yet" in user.said("agents")
    [result] = json.loads(user.said("agents", "verify", "a", "--json", "--no-check"))
    assert result["methods"] == ["key (agent)"]


def test_verify_ends_an_agent_that_does_not_answer(user, registry):
    registry.add_archive("a", {"a": AGENT.replace("BODY", "sys.stdin.read()")}, "./a")
    done = user.accord("agents", "verify", "a", "--timeout", "1")
    assert "has not answered within 1 seconds" in done.stdout


def test_verify_takes_the_folder_of_an_entry(user, registry):
    body = AGENT.replace("BODY", ANSWER.replace("METHODS", LOGIN.replace('"id"', '"type": "terminal", "id"')))
    target = registry.add_archive("mine", {"a": body}, "./a")["distribution"]
    publish(
        user.folder,
        {
            **GOOD,
            "id": "mine",
            "distribution": {"binary": {this_platform().key: target["binary"][this_platform().key]}},
        },
    )
    assert "login: key (terminal)" in user.said("agents", "verify", "mine", "--no-check")


WHOLE_AGENT = f"""#!{sys.executable}
import accord
agent = accord.Agent("whole")
@agent.login("key", "Key")
def log_in(): ...
@agent.on_login_check
def is_logged_in():
    return True
@agent.on_prompt
async def reply(turn):
    await turn.say("hello")
agent.run()
"""


def test_verify_checks_the_behaviour_of_an_agent_without_a_prompt(user, registry):
    registry.add_archive("a", {"a": WHOLE_AGENT}, "./a")
    said = user.said("agents", "verify", "a")
    assert "login: key (agent)" in said
    assert said.splitlines()[-1].startswith("  conformant")
    [result] = json.loads(user.said("agents", "verify", "a", "--json"))
    passed = {it["id"] for it in result["check"]["checks"] if it["status"] == "pass"}
    assert {"lint.initialize.succeeds", "session.agent-baseline", "lint.ends-at-end-of-input"} <= passed
    assert "prompt.content.agent-takes-text" not in passed


STRANGE_LOGIN = """
for line in sys.stdin:
    request = json.loads(line)
    at = request["params"].get("clientCapabilities", {}).get("auth", {}).get("terminal")
    ways = [{"id": "key", "name": "Key"}] + ([{"id": "t", "name": "T", "type": "terminal", "command": "x"}] * bool(at))
    result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": ways}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def test_verify_reports_a_wrong_terminal_login_in_the_words_of_the_checker(user, registry):
    program = f"#!{sys.executable}\nimport json, sys\n{STRANGE_LOGIN}"
    registry.add_archive("a", {"a": program}, "./a")
    done = user.accord("agents", "verify", "a")
    assert done.returncode == 1
    assert "FAIL  auth.terminal.no-command  agent MUST" in done.stdout
    assert "the auth method 't' has a command" in done.stdout
    assert user.accord("agents", "verify", "a", "--no-check").returncode == 0


def test_verify_is_not_failed_by_an_agent_that_asks_for_its_login(user, registry):
    registry.add_archive("a", {"a": WHOLE_AGENT.replace("return True", "return False")}, "./a")
    assert "blocked: the agent asks for a login before a session" in user.said("agents", "verify", "a")
