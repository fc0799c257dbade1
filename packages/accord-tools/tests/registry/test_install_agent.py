"""Agents are installed once, from archives, npm and PyPI, and what goes wrong is said in the words of what failed."""

import errno
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from accord_tools.registry import InstallError, RegistryError, archives, downloads, installed_agents
from accord_tools.registry.agent_index import load_index
from accord_tools.registry.entry import here as this_platform
from tests.registry.conftest import DEMO
from tests.registry.local_registry import Answer, tar_archive

PROGRAM = "#!/bin/sh\necho started\n"
NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
NODE_PROGRAM = "#!/usr/bin/env node\nconsole.log('started', ...process.argv.slice(2))\n"
PYTHON_PROGRAM = "import sys\n\ndef main():\n    print('started', *sys.argv[1:])\n"
OTHER = (
    "npm does not offer helper 1.2.0 here (it is not published, or too new for your settings of npm); {} was installed"
)


def output_of(agent):
    return subprocess.run(agent.argv, capture_output=True, text=True, check=True, timeout=60).stdout


def left(agent_id):
    """The folders in which versions of an agent are, finished or not."""
    folder = installed_agents.folder_of(agent_id)
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


# Archives


@pytest.mark.parametrize("form", ["tar.gz", "tgz", "tar.bz2", "tbz2", "zip"])
def test_an_archive_is_installed_and_its_program_starts(registry, put_in, form):
    registry.add_archive("a", {"a": PROGRAM, "about.txt": "text"}, "./a", form=form, args=("acp",), env={"X": "1"})
    agent = put_in("a")
    assert output_of(agent) == "started\n"
    assert agent.argv[1:] == ["acp"]
    assert agent.env == {"X": "1"}
    assert installed_agents.current("a") == agent


def test_only_the_program_is_made_executable(registry, put_in):
    registry.add_archive("a", {"a": "no shebang", "b": "text"}, "./a", form="zip")
    files = Path(put_in("a").argv[0]).parent
    assert stat.S_IMODE((files / "a").stat().st_mode) & 0o111 == 0o111
    assert stat.S_IMODE((files / "b").stat().st_mode) & 0o111 == 0


def test_a_download_without_an_ending_is_the_program_itself(registry, put_in):
    registry.add_download("a", PROGRAM.encode(), "./deep/tool", "a-linux-x64")
    agent = put_in("a")
    assert output_of(agent) == "started\n"
    assert agent.argv[0].endswith("deep/tool")


def test_a_program_one_folder_deeper_is_found(registry, put_in):
    registry.add_archive("a", {"a-1.0/bin/a": PROGRAM}, "./bin/a")
    assert output_of(put_in("a")) == "started\n"


def test_an_archive_without_the_program_says_what_it_has(registry, put_in):
    registry.add_archive("a", {"bin/b": PROGRAM}, "./a")
    with pytest.raises(InstallError, match=r"no program 'a'; it has bin/b"):
        put_in("a")
    assert left("a") == []


def test_a_program_of_the_system_gets_its_script_by_its_path(registry, put_in):
    registry.add_archive("a", {"main.py": "print('started')"}, "python3", args=("./main.py",))
    agent = put_in("a")
    assert agent.argv[0] == "python3"
    assert output_of(agent) == "started\n"


@pytest.mark.parametrize("cmd", ["../a", "/bin/sh", "./x/../../a", "."])
def test_a_command_outside_of_the_archive_is_refused(registry, put_in, cmd):
    registry.add_archive("a", {"a": PROGRAM}, cmd)
    with pytest.raises(InstallError, match="'cmd' must be a relative path inside of the archive"):
        put_in("a")


def test_a_wrong_checksum_installs_nothing_and_says_whose_mistake_it_may_be(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a")["distribution"]["binary"][this_platform().key]["sha256"] = "0" * 64
    with pytest.raises(InstallError, match=r"the registry has sha256 0000.*made a mistake, or someone has changed"):
        put_in("a")
    assert left("a") == []


def test_an_installer_of_a_system_is_refused(registry, put_in):
    registry.add_download("a", b"x", "./a", "a.dmg")
    with pytest.raises(InstallError, match=r"a.dmg is an installer of a system"):
        put_in("a")


def test_an_unsafe_archive_leaves_nothing(registry, put_in, here):
    registry.add_archive("a", {"a": PROGRAM, "../../../outside": "x"}, "./a")
    with pytest.raises(InstallError, match="outside of its folder"):
        put_in("a")
    assert left("a") == []
    assert not list(here.rglob("outside"))


def test_a_download_that_ends_early_is_an_error(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    path = "/download/v1.0.0/a.tar.gz"
    registry.answers[path] = Answer(registry.answers[path].body, length=1_000_000)
    with pytest.raises(RegistryError, match=r"the connection ended after .* of 1,000,000 bytes"):
        put_in("a")
    assert left("a") == []


def test_an_archive_that_is_gone_says_so_and_the_old_version_stays(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    old = put_in("a")
    registry.add_archive("a", {"a": PROGRAM}, "./a", version="1.1.0")
    del registry.answers["/download/v1.1.0/a.tar.gz"]
    with pytest.raises(RegistryError, match=r"answered 404 .*newer or older"):
        put_in("a")
    assert installed_agents.current("a") == old
    assert output_of(old) == "started\n"
    assert left("a") == ["1.0.0-binary"]


def test_the_bytes_of_a_download_are_told(registry, put_in, told):
    registry.add_archive("a", {"a": PROGRAM, "data": os.urandom(700_000)}, "./a")
    put_in("a")
    size = len(registry.answers["/download/v1.0.0/a.tar.gz"].body)
    assert told.counts[-1] == (size, size)
    assert len(told.counts) > 1
    assert told.steps == [f"Downloading {registry.address}/download/v1.0.0/a.tar.gz", "Unpacking a.tar.gz"]


def test_a_full_disk_is_said_and_nothing_stays(registry, put_in, monkeypatch):
    registry.add_archive("a", {"a": PROGRAM}, "./a")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archives, "unpack", full)
    with pytest.raises(InstallError, match="the disk is full"):
        put_in("a")
    assert left("a") == []


def test_an_archive_of_a_mirror_may_be_relative_to_its_list(registry, put_in, here, monkeypatch):
    registry.answers["/download/a.tar.gz"] = Answer(tar_archive({"a": PROGRAM}))
    registry.add_entry("a", {"binary": {this_platform().key: {"archive": "download/a.tar.gz", "cmd": "./a"}}})
    assert output_of(put_in("a")) == "started\n"
    (here / "mirror").mkdir()
    (here / "mirror" / "b.tar.gz").write_bytes(tar_archive({"b": PROGRAM}))
    entry = {"id": "b", "version": "1.0.0"}
    entry["distribution"] = {"binary": {this_platform().key: {"archive": "b.tar.gz", "cmd": "./b"}}}
    (here / "mirror" / "registry.json").write_text(json.dumps({"agents": [entry]}))
    monkeypatch.setenv("ACCORD_REGISTRY", str(here / "mirror"))
    assert output_of(put_in("b")) == "started\n"


def test_a_remote_list_cannot_name_a_file_of_this_machine(registry, put_in, here):
    (here / "secret.tar.gz").write_bytes(tar_archive({"a": PROGRAM}))
    target = {"archive": f"file://{here}/secret.tar.gz", "cmd": "./a"}
    registry.add_entry("a", {"binary": {this_platform().key: target}})
    with pytest.raises(RegistryError, match="must begin with https://"):
        put_in("a")


# Versions


def test_an_agent_that_is_installed_is_not_installed_again(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    first = put_in("a")
    asked = len(registry.requests)
    assert put_in("a") == first
    assert [path for path, _ in registry.requests[asked:]] == ["/registry.json"]
    assert put_in("a", again=True).folder != first.folder


def test_a_new_version_stands_beside_the_old_one(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a", version="1.9.0")
    put_in("a")
    registry.add_archive("a", {"a": PROGRAM}, "./a", version="1.10.0")
    put_in("a")
    assert [agent.version for agent in installed_agents.versions_of("a")] == ["1.10.0", "1.9.0"]
    assert installed_agents.current("a").version == "1.10.0"


def test_a_version_that_is_in_use_is_removed_only_when_it_is_free(registry, put_in, here):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    agent = put_in("a")
    code = "import sys; from accord_tools.registry.installed_agents import hold_installed as hold; hold('a')"
    user = subprocess.Popen(
        [sys.executable, "-c", f"{code}; print('held', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout.readline() == "held\n"
    assert installed_agents.remove("a") == ["1.0.0-binary"]
    assert installed_agents.current("a") is None
    assert Path(agent.argv[0]).exists()
    user.communicate("")
    assert installed_agents.remove("a") == []
    assert not Path(agent.argv[0]).exists()


def test_two_installations_at_once_install_it_once(registry, put_in, here):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    load_index()
    found = []
    threads = [threading.Thread(target=lambda: found.append(put_in("a"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({agent.folder for agent in found}) == 1
    assert [path for path, _ in registry.requests].count("/download/v1.0.0/a.tar.gz") == 1


def test_what_an_interrupted_installation_left_is_removed(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    folder = installed_agents.new_folder("a", "0.9.0", "binary")
    (folder / "half").write_text("x")
    assert installed_agents.current("a") is None
    put_in("a")
    assert left("a") == ["1.0.0-binary"]


def test_a_strange_version_and_a_reserved_id_get_safe_folders(registry, put_in, here):
    registry.add_archive("con", {"a": PROGRAM}, "./a", version="../../../up")
    agent = put_in("con")
    assert agent.folder.parent == here / "data" / "accord" / "agents" / "con_"
    assert [it.id for it in installed_agents.all_installed()] == ["con"]
    registry.add_archive("constructor", {"a": PROGRAM}, "./a")
    assert put_in("constructor").id == "constructor"


def test_an_entry_that_fits_no_platform_here_says_what_it_has(registry, put_in):
    registry.add_entry("a", {"binary": {"plan9-mips": {"archive": "https://example.com/a.zip", "cmd": "./a"}}})
    with pytest.raises(InstallError, match=rf"a has nothing for {this_platform().key}; it has plan9-mips"):
        put_in("a")
    registry.add_entry("b", {"docker": {"image": "b"}})
    with pytest.raises(InstallError, match="b cannot be installed: unknown kind of distribution 'docker'"):
        put_in("b")


# What was agreed


def test_the_same_version_with_other_content_is_refused_until_it_is_forgotten(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a", with_hash=False)
    put_in("a")
    registry.add_archive("a", {"a": PROGRAM + "# changed\n"}, "./a", with_hash=False)
    with pytest.raises(RegistryError, match=r"a 1.0.0 has changed since it was first installed here"):
        put_in("a", again=True)
    assert downloads.forget("a") == 1
    assert put_in("a", again=True).version == "1.0.0"


def test_a_checksum_can_be_required(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a", with_hash=False)
    with pytest.raises(InstallError, match=r"the registry has no checksum of a\.tar\.gz, and one is required; nothing"):
        put_in("a", require_hash=True)
    registry.add_archive("b", {"b": PROGRAM}, "./b")
    assert put_in("b", require_hash=True).integrity.startswith("sha256:")


def test_other_content_than_the_lock_file_has_is_refused(registry, put_in):
    registry.add_archive("a", {"a": PROGRAM}, "./a")
    lock = downloads.LockedAgent("a", "1.0.0", "binary", {this_platform().key: "sha256:00"})
    with pytest.raises(RegistryError, match=r"a 1.0.0 is not what the lock file has: it must be sha256:00"):
        put_in("a", locked=lock)
    with pytest.raises(RegistryError, match="the lock file has no integrity of a for"):
        put_in("a", locked=downloads.LockedAgent("a", "1.0.0", "binary", {"plan9-mips": "sha256:00"}))
    assert left("a") == []


# npm


@NPM
def test_a_package_of_npm_is_installed_and_its_program_starts_without_npx(registry, put_in):
    registry.add_npm_package("@x/helper", "1.2.0", {"run.js": NODE_PROGRAM}, {"helper": "run.js", "other": "run.js"})
    registry.add_entry("h", {"npx": {"package": "@x/helper@1.2.0", "args": ["--acp"]}}, "1.2.0")
    agent = put_in("h")
    assert output_of(agent) == "started --acp\n"
    assert agent.integrity.startswith("sha512-")
    assert "npx" not in " ".join(agent.argv[:1]).replace("1.2.0-npx", "")


@NPM
@pytest.mark.parametrize(
    ("bins", "cmd", "chosen"),
    [
        ("run.js", None, "helper"),
        ({"only": "run.js"}, None, "only"),
        ({"a": "run.js", "helper": "run.js"}, None, "helper"),
        ({"a": "run.js", "b": "run.js"}, "b", "b"),
    ],
)
def test_the_program_of_a_package_is_the_named_the_usual_or_the_only_one(registry, put_in, bins, cmd, chosen):
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, bins)
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0", **({"cmd": cmd} if cmd else {})}})
    assert Path(put_in("h").argv[0]).name == chosen


@NPM
@pytest.mark.parametrize(
    ("bins", "says"),
    [
        ({"a": "run.js", "b": "run.js"}, "several programs, and its entry names none of them: a, b"),
        (None, "has no program"),
    ],
)
def test_a_package_without_a_clear_program_says_what_it_has(registry, put_in, bins, says):
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, bins)
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0"}})
    with pytest.raises(InstallError, match=says):
        put_in("h")


@NPM
def test_a_version_that_npm_does_not_have_yet_is_replaced_by_the_newest_below_it(registry, put_in, told):
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        registry.add_npm_package("helper", version, {"run.js": NODE_PROGRAM}, "run.js")
    registry.add_entry("h", {"npx": {"package": "helper@1.2.0"}}, "1.2.0")
    agent = put_in("h")
    assert (agent.version, agent.listed) == ("1.1.0", "1.2.0")
    assert told.notes == [OTHER.format("1.1.0")]
    assert put_in("h") == agent


@NPM
def test_a_version_that_the_user_s_npm_finds_too_new_is_replaced(registry, put_in, told, here, monkeypatch):
    npm = subprocess.run(["npm", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, npm.split(".")[:2])) < (11, 10):
        pytest.skip(f"npm {npm.strip()} has no min-release-age")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, "run.js")
    registry.add_npm_package("helper", "1.2.0", {"run.js": NODE_PROGRAM}, "run.js", published=now)
    registry.add_entry("h", {"npx": {"package": "helper@1.2.0"}}, "1.2.0")
    (here / "npmrc").write_text("min-release-age=7\n")
    monkeypatch.setenv("npm_config_userconfig", str(here / "npmrc"))
    assert put_in("h").version == "1.0.0"
    assert told.notes == [OTHER.format("1.0.0")]


@NPM
def test_a_version_that_was_asked_for_is_never_replaced(registry, put_in):
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, "run.js")
    registry.add_entry("h", {"npx": {"package": "helper@1.2.0"}}, "1.2.0")
    with pytest.raises(InstallError, match="npm failed"):
        put_in("h", version="1.1.0")
    assert put_in("h", version="1.0.0").version == "1.0.0"


@NPM
def test_the_words_of_npm_are_kept_when_it_fails(registry, put_in):
    registry.add_entry("h", {"npx": {"package": "absent-package@1.0.0"}})
    with pytest.raises(InstallError, match="npm failed with exit code") as caught:
        put_in("h")
    assert "404" in caught.value.words
    assert left("h") == []


@NPM
def test_the_scripts_of_a_package_run_unless_they_are_refused(registry, put_in):
    scripts = {"postinstall": "node -e \"require('fs').writeFileSync('ran', '')\""}
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, "run.js", scripts=scripts)
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0"}})
    assert not list(put_in("h", scripts=False).folder.rglob("node_modules/helper/ran"))
    assert list(put_in("h", again=True).folder.rglob("node_modules/helper/ran"))


def test_without_npm_the_error_says_what_to_install(registry, put_in, monkeypatch):
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0"}})
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InstallError, match=r"npm is not installed; install Node.js"):
        put_in("h")


@pytest.mark.parametrize("package", ["--prefix=/", "a b@1", "../up", "http://example.com/x.tgz", "file:x", "a@1 && b"])
@pytest.mark.parametrize("kind", ["npx", "uvx"])
def test_a_package_name_that_npm_or_pypi_cannot_have_is_refused(registry, put_in, package, kind):
    registry.add_entry("h", {kind: {"package": package}})
    with pytest.raises(InstallError, match=r"a package that (npm|PyPI) cannot have"):
        put_in("h")


@NPM
def test_a_package_with_unexpected_content_never_runs_its_scripts(registry, put_in, here):
    ran = here / "ran"
    scripts = {"postinstall": f"node -e \"require('fs').writeFileSync('{ran}', '')\""}
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, "run.js", scripts=scripts)
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0"}})
    lock = downloads.LockedAgent("h", "1.0.0", "npx", {downloads.ANY: "sha512-other"})
    with pytest.raises(RegistryError, match=r"h 1.0.0 is not what the lock file has"):
        put_in("h", locked=lock)
    downloads.remember("h", "1.0.0", downloads.ANY, "npx", "sha512-other")
    with pytest.raises(RegistryError, match=r"h 1.0.0 has changed since it was first installed here"):
        put_in("h")
    assert not ran.exists()
    downloads.forget("h")
    put_in("h")
    assert ran.exists()


@NPM
def test_a_package_of_npm_without_a_checksum_is_refused_before_npm_installs_anything(registry, put_in):
    registry.add_npm_package("tool", "1.0.0", {"a.js": ""}, None)
    registry.add_npm_package("helper", "1.0.0", {"run.js": NODE_PROGRAM}, "run.js", dependencies={"tool": "1.0.0"})
    registry.add_entry("h", {"npx": {"package": "helper@1.0.0"}})
    whole = registry.answers["/npm/tool"]
    about = json.loads(whole.body)
    about["versions"]["1.0.0"]["dist"] = {"tarball": about["versions"]["1.0.0"]["dist"]["tarball"]}
    registry.answers["/npm/tool"] = replace(whole, body=json.dumps(about).encode())
    with pytest.raises(InstallError, match="npm's registry has no checksum of tool, and one is required"):
        put_in("h", require_hash=True)
    assert not [path for path, _ in registry.requests if path.endswith(".tgz")]
    registry.answers["/npm/tool"] = whole
    assert put_in("h", require_hash=True).integrity.startswith("sha512-")


# PyPI


def uv():
    """The folder of uv, if it is installed."""
    beside = Path(sys.executable).parent
    found = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    return None if found is None else Path(found).parent


@pytest.fixture(params=["uv", "pip"])
def python_installer(request, monkeypatch):
    """Installs packages of PyPI with uv, and without it."""
    folder = uv()
    if request.param == "uv":
        if folder is None:
            pytest.skip("uv is not installed")
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    elif folder is not None:
        kept = [it for it in os.environ["PATH"].split(os.pathsep) if not (Path(it) / "uv").exists()]
        monkeypatch.setenv("PATH", os.pathsep.join(kept))
    return request.param


def test_a_package_of_pypi_is_installed_and_its_program_starts(registry, put_in, python_installer, told):
    registry.add_python_package("Py-Helper", "0.3.0", {"py_h.py": PYTHON_PROGRAM}, {"py-helper": "py_h:main"})
    registry.add_entry("p", {"uvx": {"package": "Py-Helper==0.3.0", "args": ["-x"]}}, "0.3.0")
    agent = put_in("p")
    assert output_of(agent) == "started -x\n"
    assert told.steps[0].startswith(python_installer)
    assert agent.version == "0.3.0"
    assert agent.integrity.startswith("files-sha256:")


def test_uv_and_pip_agree_on_the_content_of_a_package(registry, put_in, here, monkeypatch):
    if (folder := uv()) is None:
        pytest.skip("uv is not installed")
    registry.add_python_package("py-h", "0.3.0", {"py_h.py": PYTHON_PROGRAM}, {"py-h": "py_h:main"})
    registry.add_entry("p", {"uvx": {"package": "py-h==0.3.0"}}, "0.3.0")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        first = put_in("p")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert put_in("p", again=True).integrity == first.integrity


def test_a_package_of_pypi_without_a_checksum_is_refused_before_uv_installs_anything(registry, put_in, monkeypatch):
    if (folder := uv()) is None:
        pytest.skip("uv is not installed")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    registry.add_python_package("tool", "1.0.0", {"tool.py": ""}, {})
    registry.add_python_package("py-h", "0.3.0", {"py_h.py": PYTHON_PROGRAM}, {"py-h": "py_h:main"}, ("tool",))
    registry.add_entry("p", {"uvx": {"package": "py-h==0.3.0", "args": ["-x"]}}, "0.3.0")
    whole = registry.answers["/simple/tool/"]
    registry.answers["/simple/tool/"] = replace(whole, body=re.sub(rb"#sha256=\w+", b"", whole.body))
    with pytest.raises(InstallError, match="the package index has no checksum of tool, and one is required"):
        put_in("p", require_hash=True)
    assert left("p") == []
    registry.answers["/simple/tool/"] = whole
    agent = put_in("p", require_hash=True)
    assert output_of(agent) == "started -x\n"
    assert put_in("p", again=True).integrity == agent.integrity


def test_without_uv_no_package_of_pypi_has_a_checksum_that_is_known(registry, put_in, monkeypatch):
    registry.add_entry("p", {"uvx": {"package": "py-h==0.3.0"}}, "0.3.0")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InstallError, match=r"--require-hash needs uv for a package of PyPI.*install uv"):
        put_in("p", require_hash=True)
    assert not [path for path, _ in registry.requests if path.startswith("/simple")]


def test_the_words_of_pip_or_uv_are_kept_when_it_fails(registry, put_in, python_installer):
    registry.add_entry("p", {"uvx": {"package": "absent-package==1.0.0"}})
    with pytest.raises(InstallError, match="failed with exit code") as caught:
        put_in("p")
    assert "absent-package" in caught.value.words
    assert left("p") == []


def test_an_installed_demo_agent_answers_a_turn(registry, user):
    registry.add_archive("demo", {"bin/demo": DEMO}, "./bin/demo")
    user.said("agents", "install", "demo", "--yes")
    assert user.said("run", "Say hello", "-a", "demo") == "hello\n"
