"""Real control groups, and real containers, where this machine allows them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from accord.confinement import cgroup
from accord.confinement.cgroup import ControlGroup

CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
{runtime}
cgroup_manager = "cgroupfs"
events_logger = "file"
"""

STORAGE = """
[storage]
driver = "vfs"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""


@pytest.fixture
def kernel_group(tmp_path):
    """A control group of version 2 that the test may use, and that is removed with all that is in it."""
    mounts = Path("/proc/self/mountinfo")
    root = cgroup.mounted(mounts.read_text()) if mounts.exists() else None
    if root is None:
        pytest.skip("this test needs control groups of version 2")
    folder = root / f"accord-test-{os.getpid()}-{tmp_path.name}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"this test needs a control group of its own: {error.strerror}")
    yield folder
    for below in folder.iterdir():
        if below.is_dir():
            ControlGroup(below).remove_now()
    folder.rmdir()


@pytest.fixture(scope="session")
def podman(tmp_path_factory):
    """The environment in which podman runs an image with a shell, `accord-test`."""
    busybox = Path("/bin/busybox")
    if shutil.which("podman") is None or not busybox.exists():
        pytest.skip("this test needs podman, and busybox (packages podman and busybox-static)")
    folder = tmp_path_factory.mktemp("podman")
    runtime = 'runtime = "runc"' if shutil.which("runc") else ""
    (folder / "containers.conf").write_text(CONTAINERS.format(runtime=runtime))
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    files = {name: str(folder / f"{name}.conf") for name in ("containers", "storage")}
    variables = {"CONTAINERS_CONF": files["containers"], "CONTAINERS_STORAGE_CONF": files["storage"]}
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as image:
        image.add(busybox, "bin/busybox")
        for name in ("sh", "tail", "sleep", "printenv", "touch"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            image.addfile(link)
    trial = [
        "--rm",
        "--init",
        "--network=none",
        "--memory=64M",
        "--pids-limit=9",
        "accord-test",
        "/bin/sh",
        "-c",
        "true",
    ]
    for words in (["import", str(archive), "accord-test"], ["run", *trial]):
        done = subprocess.run(
            ["podman", *words],
            check=False,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode:
            pytest.skip(f"podman cannot run containers here: {done.stderr.strip().splitlines()[-1:]}")
    yield variables
    removing = ["podman", "rm", "--all", "--force"]
    subprocess.run(removing, check=False, env={**os.environ, **variables}, capture_output=True, timeout=60)
