"""Keys of providers: where they are kept, and what is said without one."""

import os
import stat
import subprocess
import sys

import pytest

from accord_tools.coder import api_keys

VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment without keys and without a keyring; its configuration is empty."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return tmp_path


def accord(*arguments):
    return subprocess.run([sys.executable, "-m", "accord", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")
def test_a_key_is_kept_in_a_file_that_only_its_user_reads(environment):
    where = api_keys.store_key("anthropic", "sk-1")
    file = environment / "accord" / "keys.json"
    assert where == f"the file {file}, which only you can read"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert api_keys.stored_key("anthropic") == "sk-1"
    assert api_keys.stored_key("openai") is None
    api_keys.forget_key("anthropic")
    assert api_keys.stored_key("anthropic") is None


def test_a_prompt_without_a_key_says_how_to_give_one(environment):
    done = accord("run", "hello", "--", sys.executable, "-m", "accord", "agent")
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Authentication required" in done.stderr
    assert f"log in with `accord login -- {sys.executable} -m accord agent`" in done.stderr


def test_a_key_in_the_system_s_keyring_is_found_and_forgotten(environment):
    keyring = pytest.importorskip("keyring")
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):
        priority = 1

        def __init__(self):
            super().__init__()
            self.kept = {}

        def get_password(self, service, username):
            return self.kept.get((service, username))

        def set_password(self, service, username, password):
            self.kept[service, username] = password

        def delete_password(self, service, username):
            del self.kept[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    try:
        assert api_keys.store_key("anthropic", "sk-1") == "the system's keyring"
        assert api_keys.stored_key("anthropic") == "sk-1"
        api_keys.forget_key("anthropic")
        assert api_keys.stored_key("anthropic") is None
    finally:
        keyring.set_keyring(before)
