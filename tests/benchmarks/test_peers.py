"""Peers are data, and the data is complete."""

import re
from pathlib import Path

import pytest
from benchmarks.build import Unavailable, build, build_all, cache_folder, fingerprint
from benchmarks.peers import FLOOR, GO, HERE, OURS, PEERS, PYTHON, TYPESCRIPT, Peer, fill

OTHERS = [peer for peer in PEERS.values() if peer is not OURS]
PLACE = re.compile(r"\{(\w+)\}")


def test_the_peers_are_these():
    assert list(PEERS) == ["accord", "python", "python-next", "typescript", "go", "rust", "floor"]


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_a_peer_s_version_is_the_one_that_is_pinned(peer):
    (pins,) = [HERE / source for source in peer.files if source.startswith("pins/")]
    lines = [line for line in pins.read_text().splitlines() if peer.package in line]
    assert any(peer.version in line for line in lines), lines


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_every_pin_is_exact(peer):
    (pins,) = [HERE / source for source in peer.files if source.startswith("pins/")]
    assert not re.search(r"[\^~*]|>=|<|latest", pins.read_text())


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_a_peer_s_commands_use_known_places_only(peer):
    tokens = [token for tokens in (peer.agent, peer.client, peer.imports, *peer.steps) for token in tokens]
    assert {name for token in tokens for name in PLACE.findall(token)} <= {"build", "here", "python", "venv", "loop"}


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_a_peer_s_sources_are_there(peer):
    scripts = [token for token in (*peer.agent, *peer.client) if token.startswith("{here}")]
    sources = [*(HERE / source for source in peer.files), *(Path(*fill((script,), HERE)) for script in scripts)]
    assert [source for source in sources if not source.is_file()] == []


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_whoever_has_a_choice_of_loops_is_told_which(peer):
    assert bool(peer.loops) == ("{loop}" in peer.agent) == ("{loop}" in peer.client)


def test_a_peer_that_needs_a_tool_says_what_to_install():
    assert all(peer.install for peer in PEERS.values() if peer.tools)


def test_no_lock_file_and_no_build_output_is_kept():
    kept = {path.name for path in HERE.rglob("*")}
    assert not kept & {"Cargo.lock", "package-lock.json", "go.sum", "node_modules", "target"}


def test_places_are_filled_in_and_an_empty_loop_goes_away(tmp_path):
    command = ("{venv}", "{here}/a.py", "{loop}", "--x={build}")
    with_loop = fill(command, tmp_path, "uvloop")
    assert with_loop[2:] == ["--uvloop", f"--x={tmp_path}"]
    assert with_loop[1] == f"{HERE}/a.py"
    assert fill(command, tmp_path, "asyncio") == fill(command, tmp_path) == [*with_loop[:2], f"--x={tmp_path}"]


def test_the_cache_is_the_user_s(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "accord" / "peers"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() == Path.home() / ".cache" / "accord" / "peers"


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Folders of a test's own: sources here, builds in another one."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "source").write_text("text")
    monkeypatch.setattr("benchmarks.build.HERE", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def small(*steps, **more):
    """A peer with next to nothing to build."""
    required = {"package": "p", "version": "1", "language": "x", "agent": (), "client": ()}
    return Peer(name="small", files={"source": "in/copy"}, steps=steps, **required, **more)


def test_a_fingerprint_follows_the_sources(here):
    first = fingerprint(small())
    assert fingerprint(small()) == first
    (here / "source").write_text("other")
    assert fingerprint(small()) != first


APPEND = ("{python}", "-c", "open('log', 'a').write(open('in/copy').read())")


def test_a_build_happens_once_for_each_state_of_the_sources(here):
    said = []
    peer = small(APPEND)
    folder = build(peer, said.append).folder
    assert build(peer, said.append).folder == folder
    assert (folder / "log").read_text() == "text"
    (here / "source").write_text("-new")
    build(peer, said.append)
    assert (folder / "log").read_text() == "text-new"
    assert len(said) == 2


def test_a_failed_build_says_where_to_look_and_is_tried_again(here):
    peer = small(("{python}", "-c", "raise SystemExit('no network')"), install="a network")
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"small: .* failed, see .*build\.log; it needs a network") as caught:
            build(peer, lambda _: None)
    assert "no network" in (cache_folder() / "small-1" / "build.log").read_text()
    assert "\n" not in str(caught.value)


def test_a_missing_tool_skips_the_peer_with_one_line(here):
    said = []
    assert build_all([small(tools=("no-such-tool-here",), install="Something 2")], said.append) == {}
    assert said == ["skipping small: no no-such-tool-here here, install Something 2"]


def test_a_missing_source_skips_the_peer_with_one_line(here):
    (here / "source").unlink()
    said = []
    assert build_all([small()], said.append) == {}
    assert said == ["skipping small: there is no benchmarks/source"]


def test_only_languages_that_load_a_library_have_an_import_to_measure():
    assert [bool(peer.imports) for peer in (PYTHON, TYPESCRIPT, GO, FLOOR)] == [True, True, False, True]
