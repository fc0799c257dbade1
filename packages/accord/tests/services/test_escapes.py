"""No path leads out of the session's folders: not by its words, not by links, and not by changing them meanwhile."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord.project import confined
from accord.services.file_service import Files

SECRET = "the secret outside"


class World:
    """A project, and beside it what an agent must not see or change."""

    def __init__(self, base):
        self.base = base
        self.root = base / "project"
        self.outside = base / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        (self.root / "inside.txt").write_text("inside")
        (self.root / "folder").mkdir()
        (self.root / "folder" / "deep.txt").write_text("deep")
        self.secret = self.outside / "secret.txt"
        self.secret.write_text(SECRET)
        (base / "project-other").mkdir()
        (base / "project-other" / "secret.txt").write_text(SECRET)

    def link(self, name, target):
        (self.root / name).symlink_to(target)
        return self.root / name

    def is_untouched(self):
        files = {path.name: path.read_text() for path in self.outside.rglob("*") if path.is_file()}
        other = [path.name for path in (self.base / "project-other").iterdir()]
        return files == {"secret.txt": SECRET} and other == ["secret.txt"]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path.resolve())


ATTACKS = {
    # by words
    "dots from the root": "{w.root}/../outside/secret.txt",
    "dots from a folder": "{w.root}/folder/../../outside/secret.txt",
    "dots from what is missing": "{w.root}/missing/../../outside/secret.txt",
    "dots through a file": "{w.root}/inside.txt/../../outside/secret.txt",
    "many dots": "{w.root}/" + "../" * 60 + "{w.secret}",
    "doubled slashes": "{w.root}//..//outside//secret.txt",
    "two slashes first": "/{w.secret}",
    "dots and single dots": "{w.root}/./.././outside/./secret.txt",
    "a sibling with the same beginning": "{w.root}-other/secret.txt",
    "the root with a blank": "{w.root} /../outside/secret.txt",
    "plainly outside": "{w.secret}",
    "a relative path": "../outside/secret.txt",
    "a relative path inside": "inside.txt",
    "the home folder's sign": "~/secret.txt",
    "a variable": "$HOME/secret.txt",
    "a file URL": "file://{w.secret}",
    "the empty path": "",
    "only a slash": "/",
    "the root itself": "{w.root}",
    "a folder": "{w.root}/folder",
    "a zero byte": "{w.secret}\0{w.root}/inside.txt",
    "a zero byte behind the root": "{w.root}/inside.txt\0/../../outside/secret.txt",
    "Windows' separators": "{w.root}\\..\\outside\\secret.txt",
    "a drive": "C:\\outside\\secret.txt",
    "a network share": "\\\\server\\share\\secret.txt",
    "percent signs for dots": "{w.root}-other/%2e%2e/outside/secret.txt",
    "full-width dots": "{w.base}/project\uff0e\uff0e/outside/secret.txt",
    "a one-dot leader": "{w.outside}/\u2025/secret.txt",
    "another case of the root": "{w.base}/PROJECT/../outside/secret.txt",
    "another Unicode form of the root": "{w.base}/project\u0301/../outside/secret.txt",
    "half a surrogate pair": "{w.root}/\ud83d",
    "a byte in disguise": "{w.root}/\udcff",
    "a name that is too long": "{w.root}/" + "a" * 300,
    "a path that is too long": "{w.root}/" + "folder/" * 2000 + "x",
    # by the kernel's own paths
    "our own environment": "/proc/self/environ",
    "our root by /proc": "/proc/self/root{w.secret}",
    "our working folder by /proc": "/proc/self/cwd/../secret.txt",
    "a descriptor": "/dev/fd/0",
    "a device": "/dev/zero",
    "memory": "/dev/mem",
    # by links
    "a link to a file": lambda w: w.link("link", w.secret),
    "a relative link to a file": lambda w: w.link("link", "../outside/secret.txt"),
    "a link to a folder": lambda w: w.link("link", w.outside) / "secret.txt",
    "a relative link to a folder": lambda w: w.link("link", "../outside") / "secret.txt",
    "a link to a new file": lambda w: w.link("link", w.outside / "new.txt"),
    "a link to a new file in a linked folder": lambda w: w.link("link", w.outside) / "new.txt",
    "a link in a folder": lambda w: w.link("folder/link", w.outside) / "secret.txt",
    "a link to a link": lambda w: (w.link("first", w.outside), w.link("second", "first"))[1] / "secret.txt",
    "a link to the folder above": lambda w: w.link("up", "..") / "outside" / "secret.txt",
    "a link that goes in and out": lambda w: w.link("link", "folder/../../outside/secret.txt"),
    "a link by way of the root's own name": lambda w: w.link("link", f"{w.root}/../outside/secret.txt"),
    "a link to the root of all": lambda w: w.link("all", "/") / str(w.secret).lstrip("/"),
    "a link to another link's folder": lambda w: (
        w.link("here", "folder"),
        w.link("out", "here/../../outside/secret.txt"),
    )[1],
    "a link to itself": lambda w: w.link("loop", "loop"),
    "two links to each other": lambda w: (w.link("one", "two"), w.link("two", "one"))[0],
    "a link into /proc": lambda w: w.link("link", "/proc/self/environ"),
    "a link to /proc's link to the root": lambda w: w.link("link", "/proc/self/root") / str(w.secret).lstrip("/"),
    "a link to a device": lambda w: w.link("link", "/dev/zero"),
    "a link to the root's sibling": lambda w: w.link("link", "../project-other/secret.txt"),
    "a link to the folder that the root is in": lambda w: w.link("link", w.base) / "outside" / "secret.txt",
}


async def tries(files, session, path):
    """What an agent gets by reading and by writing there."""
    outcomes = []
    for attempt in (files.read(session, str(path)), files.write(session, str(path), "written by the agent")):
        try:
            outcomes.append(await attempt)
        except accord.RequestError as error:
            outcomes.append(error)
    return outcomes


@pytest.fixture(params=["descriptors", "paths"])
def way(request, monkeypatch):
    """The two ways to walk: where a file can be opened inside of a folder, and where it cannot."""
    monkeypatch.setattr(confined, "DESCRIPTORS", request.param == "descriptors")
    return request.param


@pytest.mark.requirement("files.escape-proof", "files.inside-roots")
@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_path_leads_outside(attack, world, asking, way):
    session = asking(world.root)
    how = ATTACKS[attack]
    path = how.format(w=world) if isinstance(how, str) else how(world)
    read, written = await tries(Files(), session, path)
    assert isinstance(read, accord.RequestError)
    assert read.code in (-32602, -32002)
    if isinstance(written, accord.RequestError):
        assert written.code in (-32602, -32002)
    else:  # a strange name, but one inside: the file is there, under that name
        assert written.path.is_relative_to(world.root)
        assert written.path.read_text() == "written by the agent"
    assert world.is_untouched()


PECULIAR = {
    "a pipe": os.mkfifo,
    "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", PECULIAR)
async def test_what_is_no_file_is_refused_without_waiting_for_it(kind, world, asking, within, monkeypatch):
    monkeypatch.chdir(world.root)  # a socket's path has to be short
    PECULIAR[kind](Path("it"))
    read, written = await within(tries(Files(), asking(world.root), world.root / "it"))
    assert kind in str(read)
    assert written.code == -32602


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
async def test_a_device_inside_is_refused(world, asking):
    try:
        os.mknod(world.root / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not even root may make a device here")
    read, written = await tries(Files(), asking(world.root), world.root / "zero")
    assert "a device" in str(read)
    assert written.code == -32602


async def test_a_file_with_a_name_outside_is_not_read(world, asking):
    os.link(world.secret, world.root / "hard")
    read, _ = await tries(Files(), asking(world.root), world.root / "hard")
    assert "other names" in str(read)


async def test_writing_to_one_of_a_file_s_names_leaves_the_others_alone(world, asking):
    os.link(world.secret, world.root / "hard")
    files = Files(hard_links=True)
    assert await files.read(asking(world.root), str(world.root / "hard")) == SECRET
    await files.write(asking(world.root), str(world.root / "hard"), "mine")
    assert (world.root / "hard").read_text() == "mine"
    assert world.is_untouched()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
async def test_the_kernel_s_files_are_not_read_even_where_everything_is_a_root(asking):
    for path in ("/proc/self/environ", "/proc/self/root/proc/self/environ", "/proc/1/cmdline"):
        (read, written) = await tries(Files(), asking("/"), path)
        assert isinstance(read, accord.RequestError)
        assert isinstance(written, accord.RequestError)


async def test_a_root_that_is_a_link_is_resolved_when_the_session_begins(world, asking, way):
    name = world.base / "name"
    name.symlink_to(world.root)
    session = asking(name)
    files = Files()
    assert await files.read(session, f"{name}/inside.txt") == "inside"
    name.unlink()
    name.symlink_to(world.outside)
    assert await files.read(session, f"{name}/inside.txt") == "inside"
    read, _ = await tries(files, session, f"{name}/secret.txt")
    assert read.code == -32002


async def test_a_root_behind_a_link_has_two_names(world, asking, way):
    (world.base / "name").symlink_to(world.base)
    session = asking(f"{world.base}/name/project")
    files = Files()
    assert await files.read(session, f"{world.base}/name/project/inside.txt") == "inside"
    assert await files.read(session, f"{world.root}/inside.txt") == "inside"


async def test_a_root_that_becomes_a_link_leads_nowhere(world, asking, way):
    session = asking(world.root)
    world.root.rename(world.base / "moved")
    world.root.symlink_to(world.outside)
    read, written = await tries(Files(), session, world.root / "secret.txt")
    assert read.code == written.code == -32602
    assert world.is_untouched()


async def test_a_folder_above_the_root_that_becomes_a_link_leads_nowhere(world, asking, way):
    above = world.base / "above"
    (above / "project").mkdir(parents=True)
    session = asking(above / "project")
    above.rename(world.base / "moved")
    above.symlink_to(world.base)
    read, written = await tries(Files(), session, above / "project" / "inside.txt")
    assert read.code == written.code == -32602
    assert (world.root / "inside.txt").read_text() == "inside"


async def test_a_deleted_root_is_not_made_again(world, asking, way):
    session = asking(world.root)
    shutil.rmtree(world.root)
    read, written = await tries(Files(), session, world.root / "new" / "file.txt")
    assert read.code == written.code == -32002
    assert not world.root.exists()


async def test_links_that_stay_inside_are_followed(world, asking):
    world.link("file", "inside.txt")
    world.link("there", "folder")
    world.link("folder/back", "../inside.txt")
    world.link("whole", world.root / "folder")
    session, files = asking(world.root), Files()
    for path, text in (("file", "inside"), ("there/deep.txt", "deep"), ("whole/back", "inside")):
        assert await files.read(session, f"{world.root}/{path}") == text
    change = await files.write(session, f"{world.root}/whole/back", "changed")
    assert change.path == world.root / "inside.txt"
    assert (world.root / "file").is_symlink()
    assert (world.root / "file").read_text() == "changed"


async def test_a_link_from_one_root_to_another_is_followed(world, asking):
    world.link("other", world.outside)
    session = asking(world.root, world.outside)
    assert await Files().read(session, f"{world.root}/other/secret.txt") == SECRET


async def test_without_descriptors_links_are_refused_even_inside(world, asking, monkeypatch):
    monkeypatch.setattr(confined, "DESCRIPTORS", False)
    read, _ = await tries(Files(), asking(world.root), world.link("link", "inside.txt"))
    assert "link" in str(read)


def test_without_descriptors_a_folder_that_was_replaced_meanwhile_is_not_used(world):
    place = confined.Roots([world.root]).locate(str(world.root / "folder" / "deep.txt"))
    held = confined.by_name(place, make=False)
    (world.root / "folder").rename(world.root / "former")
    (world.root / "folder").mkdir()
    with pytest.raises(accord.RequestError, match="outside the session's folders"):
        held.at("deep.txt")


# Swaps between the check and the use, by another process, as fast as it can.

SWAPPER = """
import ctypes, os, sys
root, outside, kind = sys.argv[1:]
os.chdir(root)
libc = ctypes.CDLL(None)
EXCHANGE, HERE = 2, -100
if kind == "folder":
    os.symlink(outside, "other")
    one, two = b"victim", b"other"
elif kind == "file":
    os.symlink(outside + "/secret.txt", "victim/other")
    one, two = b"victim/secret.txt", b"victim/other"
else:
    os.symlink("..", "victim/other")
    one, two = b"victim/step", b"victim/other"
exchanges = libc.renameat2(HERE, one, HERE, two, EXCHANGE) == 0
print("ready", flush=True)
while True:
    if exchanges:
        libc.renameat2(HERE, one, HERE, two, EXCHANGE)
    else:
        os.rename(one, b"aside"); os.rename(two, one); os.rename(one, two); os.rename(b"aside", one)
"""
TARGETS = {"folder": "victim/secret.txt", "file": "victim/secret.txt", "dots": "victim/step/../../outside/secret.txt"}
ROUNDS = 1500


@pytest.fixture
def swapper(world):
    (world.root / "victim" / "step").mkdir(parents=True)
    (world.root / "victim" / "secret.txt").write_text("harmless")
    processes = []

    def start(kind):
        command = [sys.executable, "-I", "-S", "-c", SWAPPER, str(world.root), str(world.outside), kind]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout.readline() == b"ready\n"

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="uses Linux's exchange of two names")
@pytest.mark.parametrize("kind", TARGETS)
async def test_a_swap_between_check_and_use_leads_nowhere(kind, world, asking, swapper, way):
    swapper(kind)
    session, files = asking(world.root), Files()
    done = 0
    while done < ROUNDS:
        done += 1
        with contextlib.suppress(accord.RequestError):
            assert await files.read(session, f"{world.root}/{TARGETS[kind]}") != SECRET
        if done % 3 == 0 and way == "descriptors":  # by paths alone, a write leaves an instant
            with contextlib.suppress(accord.RequestError):
                await files.write(session, f"{world.root}/{TARGETS[kind]}", "harmless")
            assert world.secret.read_text() == SECRET
    assert world.is_untouched()


def _kernels_files():
    """Files of the kernel's own file systems on this machine, wherever those are mounted."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        if source.split()[0] in ("cgroup", "cgroup2", "tracefs", "debugfs", "securityfs", "sysfs", "proc"):
            folder = Path(fields.split()[4])
            with contextlib.suppress(OSError):
                found += sorted(path for path in folder.iterdir() if path.is_file())[:1]
    return found


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="no /proc")
async def test_files_of_the_kernel_s_are_refused_wherever_they_are_mounted(asking):
    session, files = asking("/"), accord.Files()
    found = _kernels_files()
    assert found
    for path in found:
        for asked in (files.read(session, str(path)), files.write(session, str(path), "0")):
            with pytest.raises(accord.RequestError) as caught:
                await asked
            assert caught.value.code == -32602
            assert "kernel" in caught.value.message or "read-only" in caught.value.message


@pytest.mark.skipif(not Path("/sys/fs/cgroup").is_dir() or os.geteuid() != 0, reason="no control groups to make")
async def test_a_write_makes_no_control_group(asking):
    groups = [path.parent for path in _kernels_files() if path.name.startswith("cgroup.")]
    for group in groups:
        with pytest.raises(accord.RequestError):
            await accord.Files().write(asking("/"), str(group / "accord-test" / "a.txt"), "x")
        assert not (group / "accord-test").exists()


async def test_a_path_through_very_many_folders_takes_few_descriptors(project, asking):
    (project / "sub").mkdir()
    (project / "a.txt").write_text("text")
    (project / "near").symlink_to("sub/../" * 100 + "a.txt")
    (project / "far").symlink_to("sub/../" * 300 + "a.txt")
    assert await accord.Files().read(asking(project), str(project / "near")) == "text"
    with pytest.raises(accord.RequestError, match="256 folders"):
        await accord.Files().read(asking(project), str(project / "far"))
    with pytest.raises(accord.RequestError, match="256 folders"):
        await accord.Files().write(asking(project), f"{project}/{'d/' * 300}a.txt", "x")


@pytest.mark.parametrize("name", ["NUL", "notes.txt:hidden", "notes.txt.", "notes.txt "])
async def test_by_name_what_windows_reads_in_a_special_way_is_refused(project, session, monkeypatch, name):
    monkeypatch.setattr(confined, "DESCRIPTORS", False)
    (project / name).write_text("here the name is an ordinary one")
    with pytest.raises(accord.RequestError, match=r"a name in path (names|ends)"):
        await Files().read(session, str(project / name))
