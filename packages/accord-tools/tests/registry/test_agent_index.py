"""The list of agents: read leniently, kept on this machine, used when the network fails, and from mirrors."""

import hashlib
import json
from pathlib import Path

import pytest

from accord.errors import ConfigurationError
from accord.paths import cache_folder
from accord_tools.presentation.quantities import ago
from accord_tools.registry import RegistryError
from accord_tools.registry.agent_index import load_index
from tests.registry.local_registry import Answer

NPX = {"npx": {"package": "a@1.0.0"}}


def fetched(registry):
    """How often the list was asked for."""
    return [headers for path, headers in registry.requests if path == "/registry.json"]


def kept():
    """The file that keeps the list."""
    [path] = (cache_folder() / "registry").iterdir()
    return path


def test_a_fresh_list_is_not_asked_for_again(registry, here):
    registry.add_entry("a", NPX)
    assert [entry.id for entry in load_index()] == ["a"]
    registry.add_entry("b", NPX)
    assert [entry.id for entry in load_index()] == ["a"]
    assert len(fetched(registry)) == 1


def test_an_old_list_is_asked_for_with_its_etag_and_used_again_if_it_is_the_same(registry, here):
    registry.add_entry("a", NPX)
    load_index()
    assert [entry.id for entry in load_index(fresh=0.0)] == ["a"]
    digest = hashlib.sha256(registry.index()).hexdigest()[:16]
    assert fetched(registry)[1]["if-none-match"] == f'"{digest}"'
    registry.add_entry("b", NPX)
    assert [entry.id for entry in load_index(fresh=0.0)] == ["a", "b"]


def test_a_list_that_cannot_be_fetched_is_taken_from_the_cache_and_its_age_is_said(registry, here):
    registry.add_entry("a", NPX)
    load_index()
    head, _, body = kept().read_bytes().partition(b"\n")
    kept().write_bytes(json.dumps({**json.loads(head), "at": 0}).encode() + b"\n" + body)
    registry.answers["/registry.json"] = Answer(b"down", 503)
    index = load_index()
    assert [entry.id for entry in index] == ["a"]
    [trouble] = index.troubles
    assert "answered 503" in trouble
    assert "days ago" in trouble


def test_offline_nothing_is_asked(registry, here):
    registry.add_entry("a", NPX)
    with pytest.raises(RegistryError, match=r"no list of .* is kept on this machine; go online once"):
        load_index(offline=True)
    load_index()
    assert [entry.id for entry in load_index(offline=True, fresh=0.0)] == ["a"]
    assert len(fetched(registry)) == 1


def test_without_a_network_and_without_a_list_the_error_says_what_to_do(here, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCORD_REGISTRY", "https://registry.invalid/index.json")
    with pytest.raises(RegistryError) as error:
        load_index()
    assert str(error.value) == (
        "cannot fetch https://registry.invalid/index.json: its host name cannot be looked up, "
        "and no list of it is kept on this machine; go online once"
    )


@pytest.mark.parametrize("damage", [b"", b"{}", b"half", "cut", "changed"])
def test_a_half_written_cache_counts_as_none(registry, here, damage):
    registry.add_entry("a", NPX)
    load_index()
    whole = kept().read_bytes()
    kept().write_bytes({"cut": whole[:-10], "changed": whole.replace(b'"a"', b'"z"')}.get(damage, damage))
    assert [entry.id for entry in load_index()] == ["a"]
    assert len(fetched(registry)) == 2


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"agents": {}}', b"[" * 100_000])
def test_what_is_not_a_list_of_agents_is_an_error_that_says_so(registry, here, body):
    registry.answers["/registry.json"] = Answer(body)
    with pytest.raises(RegistryError, match="is not a list of agents"):
        load_index()


def test_a_list_of_the_future_is_read_as_far_as_it_is_understood(registry, here):
    registry.agents = [
        {"id": "new", "distribution": {"docker": {"image": "x"}, **NPX}, "mood": {"deep": [1]}, "version": "v.next"},
        {"id": "only-docker", "name": "D", "version": "1.0.0", "distribution": {"docker": {}}},
        {"id": "Bad Id", "distribution": NPX},
        {"id": "constructor", "distribution": NPX},
        {"id": "new", "distribution": NPX},
        {"id": "odd", "distribution": {"npx": {"package": 7}, "uvx": {"package": "p", "args": "x"}, "binary": []}},
        "text",
        None,
    ]
    index = load_index()
    assert [entry.id for entry in index] == ["new", "only-docker", "constructor", "odd"]
    assert index.find("new").kinds == ("npx",)
    assert index.find("new").notes == ("unknown kind of distribution 'docker'",)
    assert index.find("only-docker").kinds == ()
    assert len(index.find("odd").notes) == 3
    assert len(index.states[0].skipped) == 4


def test_one_bad_platform_does_not_hide_the_others(registry, here):
    good = {"archive": "https://example.com/a.zip", "cmd": "./a"}
    registry.add_entry("a", {"binary": {"linux-x86_64": {"cmd": "./a"}, "darwin-aarch64": good, "plan9-mips": good}})
    entry = load_index().find("a")
    assert sorted(entry.binary) == ["darwin-aarch64", "plan9-mips"]
    assert entry.notes == ("distribution.binary.linux-x86_64: 'archive' must be a text that is not empty, got None",)


def test_a_folder_and_a_file_can_be_the_registry(registry, here, monkeypatch):
    folder = here / "agents"
    (folder / "mine").mkdir(parents=True)
    (folder / "_off").mkdir()
    text = json.dumps({"id": "mine", "version": "1.0.0", "distribution": NPX, "preview": {"version": "1.1.0"}})
    (folder / "mine" / "agent.json").write_text(text)
    (folder / "_off" / "agent.json").write_text(text.replace("mine", "off"))
    monkeypatch.setenv("ACCORD_REGISTRY", str(folder))
    assert [entry.id for entry in load_index()] == ["mine"]
    assert load_index().find("mine").preview.version == "1.1.0"
    (here / "list.json").write_text(json.dumps({"agents": [{"id": "other", "distribution": NPX}]}))
    monkeypatch.setenv("ACCORD_REGISTRY", str(here / "list.json"))
    assert [entry.id for entry in load_index()] == ["other"]
    monkeypatch.setenv("ACCORD_REGISTRY", str(here / "absent"))
    with pytest.raises(RegistryError, match=r"cannot read .*absent"):
        load_index()


def test_ids_of_a_second_registry_begin_with_its_name(registry, here, monkeypatch):
    registry.add_entry("a", NPX)
    (here / "list.json").write_text(json.dumps({"agents": [{"id": "a", "distribution": NPX}]}))
    monkeypatch.setenv("ACCORD_REGISTRY", f"{registry.url} company={here / 'list.json'}")
    assert [entry.id for entry in load_index()] == ["a", "company/a"]
    registry.answers["/registry.json"] = Answer(b"down", 500)
    (cache_folder() / "registry").rename(here / "gone")
    index = load_index()
    assert [entry.id for entry in index] == ["company/a"]
    assert "answered 500" in index.troubles[0]


def test_the_registry_can_be_turned_off(registry, here, monkeypatch):
    monkeypatch.setenv("ACCORD_REGISTRY", "off")
    assert list(load_index()) == []
    assert registry.requests == []


@pytest.mark.parametrize("setting", ["http://example.com/registry.json", "/a /b", "a=/x a=/y"])
def test_an_invalid_setting_is_an_error_that_names_the_variable(here, monkeypatch, setting):
    monkeypatch.setenv("ACCORD_REGISTRY", setting)
    with pytest.raises(ConfigurationError, match=r"^ACCORD_REGISTRY must"):
        load_index()


@pytest.mark.parametrize("there", ["http://192.0.2.1/registry.json", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_a_redirect_to_what_is_not_https_is_refused(registry, here, there):
    registry.answers["/registry.json"] = Answer(status=302, headers={"Location": there})
    with pytest.raises(RegistryError, match=r"redirect must go to https|answered 302"):
        load_index()


def test_credentials_of_an_address_are_sent_to_its_host_only_and_not_shown(registry, here, monkeypatch):
    registry.answers["/first.json"] = Answer(status=302, headers={"Location": f"{registry.address}/second.json"})
    registry.answers["/second.json"] = Answer(b"no list")
    monkeypatch.setenv(
        "ACCORD_REGISTRY", f"http://ada:s3cret@127.0.0.1:{registry.address.rpartition(':')[2]}/first.json"
    )
    with pytest.raises(RegistryError) as caught:
        load_index()
    assert "s3cret" not in str(caught.value)
    sent = {path: headers.get("authorization") for path, headers in registry.requests}
    assert sent["/first.json"].startswith("Basic ")
    assert sent["/second.json"] is None


def test_proxies_of_the_environment_are_used(registry, here, monkeypatch):
    monkeypatch.setenv("ACCORD_REGISTRY", "https://registry.invalid/registry.json")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", registry.address)
    with pytest.raises(RegistryError, match=r"Tunnel connection failed|cannot fetch"):
        load_index()
    # The proxy that was asked is the local server, which does not know CONNECT.
    assert registry.connects == ["registry.invalid:443"]


def test_the_age_of_a_list_is_said_in_words():
    assert [ago(seconds) for seconds in (None, 3, 61, 7300, 200_000)] == [
        "just now", "just now", "1 minute ago", "2 hours ago", "2 days ago",
    ]  # fmt: skip


def test_the_cache_is_in_the_folder_for_caches(registry, here):
    registry.add_entry("a", NPX)
    load_index()
    assert Path(kept()).is_relative_to(here / "cache" / "accord" / "registry")


def test_without_a_network_and_a_kept_list_the_error_says_what_to_do(here, monkeypatch):
    monkeypatch.setenv("ACCORD_REGISTRY", "https://registry.invalid/registry.json")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        RegistryError, match=r"registry\.invalid.* no list of it is kept on this machine; go online once"
    ):
        load_index()
