"""`accord doctor` looks at the programs that install agents."""

import json
import os
import sys

import pytest

NODE, NPM, UV = "v22.4.1", "11.0.0", "uv 0.9.1 (x86_64)"


@pytest.fixture
def tools(user):
    """Gives this user programs that print these versions, and no others of their names."""
    folder = user.home / "bin"
    folder.mkdir(parents=True)
    user.environment["PATH"] = f"{folder}{os.pathsep}/nonexistent"

    def make(**versions):
        for name, said in versions.items():
            (folder / name).write_text(f"#!{sys.executable}\nprint({said!r})\n")
            (folder / name).chmod(0o755)
        found = json.loads(user.accord("doctor", "--json").stdout)
        return {it["what"]: it for it in found if it["what"] in ("node", "npm", "uv")}

    return make


def test_programs_that_are_new_enough_are_named_with_their_versions(tools, user):
    found = tools(node=NODE, npm=NPM, uv=UV)
    assert [(it["state"], it["do"]) for it in found.values()] == [("ok", "")] * 3
    assert found["node"]["detail"] == f"22.4.1 at {user.home}/bin/node"


@pytest.mark.parametrize(
    ("name", "said", "detail", "do"),
    [
        ("node", "v20.20.2", "older than 22", "install Node.js 22 or newer, which has npm"),
        ("npm", "8.19.4", "older than 9", "install Node.js 22 or newer"),
        ("uv", "uv 0.4.30", "older than 0.5", "pip install uv"),
        ("uv", "what?", "does not say its version: what?", "pip install uv"),
    ],
)
def test_a_program_that_is_too_old_says_what_to_install(tools, name, said, detail, do):
    found = tools(**({"node": NODE, "npm": NPM, "uv": UV} | {name: said}))
    assert found[name]["state"] == "optional"
    assert detail in found[name]["detail"]
    assert do in found[name]["do"]


def test_a_program_that_is_missing_says_what_it_is_for(tools, user):
    found = tools()
    assert [it["state"] for it in found.values()] == ["optional"] * 3
    assert "without it, pip does, except for --require-hash" in found["uv"]["detail"]
    assert "npm: install Node.js 22" in user.said("doctor", "--all")
