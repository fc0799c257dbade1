"""`HostileFolder`: a project as a stranger would pack it to run a program, to read a secret, to hang or to fill memory.

Every test that opens it asserts `is_harmless` afterwards, with all that reached an agent or a model.
"""

import os
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

SECRET = "TOP-SECRET-OUTSIDE"
MOST_READ = 64 * 1024 * 1024
"""Bytes that this process may read while the folder is open; the folder claims to hold 10 GB."""


class HostileFolder:
    """The folder `path`, with a secret beside it, and a program that leaves a trace where it runs."""

    def __init__(self, base: Path) -> None:
        self.path = base / "repo"
        self.secret = base / "secret.txt"
        self.secret.write_text(f"{SECRET}\n" * 3)
        self.trace = base / "ran"
        self.program = base / "program.sh"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.trace}\ncat\n')
        self.program.chmod(0o755)
        self.path.mkdir()
        (self.path / "README.md").write_text("An ordinary file.\n")
        (self.path / "inside.md").symlink_to("README.md")
        self._add_links()
        self._add_things_that_are_no_files()
        self._add_repository()
        self._add_embedded_repositories()
        self._read_before = _bytes_read()

    def git(self, *arguments: str, folder: Path | None = None) -> None:
        own = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *own, *arguments], cwd=folder or self.path, check=True, capture_output=True)

    def is_harmless(self, *reached: object) -> bool:
        """Assert that no program of the folder ran, no secret reached anyone, and little was read."""
        assert not self.trace.exists(), f"a program of the folder ran: {self.trace.read_text()}"
        assert SECRET not in repr(reached), "the secret beside the folder was read"
        assert "HOSTILE_TEST_KEY" not in repr(reached), "the environment was read"
        read = _bytes_read() - self._read_before
        assert read < MOST_READ, f"{read:,} bytes were read"
        return True

    def _add_links(self) -> None:
        for name, target in {
            "AGENTS.md": "../secret.txt",
            "notes.txt": str(self.secret),
            "picture.png": "../secret.txt",
            "up": "..",
            "hooks": ".git/hooks",
            "loop": "loop",
            "zero.txt": "/dev/zero",
            "environ.txt": "/proc/self/environ",
            "own.txt": "/proc/self/root" + str(self.secret),
        }.items():
            (self.path / name).symlink_to(target)
        (self.path / ".accord").mkdir()
        (self.path / ".accord" / "agents.toml").symlink_to("../../secret.txt")

    def _add_things_that_are_no_files(self) -> None:
        os.mkfifo(self.path / "CLAUDE.md")
        os.mkfifo(self.path / "pipe.png")
        with suppress(PermissionError):  # only root makes devices
            os.mknod(self.path / "device.txt", stat.S_IFCHR | 0o644, os.makedev(1, 5))
        with (self.path / "sparse.txt").open("wb") as file:
            file.truncate(10 * 1024**3)
        for name in (b"two\nlines.txt", b"\x1b]0;title\x07.txt", b"not-unicode-\xff.txt"):
            (Path(os.fsdecode(os.fsencode(self.path) + b"/" + name))).write_text("ordinary\n")
        deep = self.path
        for _ in range(100):
            deep = deep / "d"
            deep.mkdir()
        (deep / "bottom.txt").write_text("ordinary\n")

    def _add_repository(self) -> None:
        self.git("init", "--quiet")
        (self.path / ".gitignore").write_text("ignored.txt\n")
        (self.path / "ignored.txt").write_text("ignored\n")
        (self.path / "code.c").write_text("one\n")
        attributes = "* filter=evil diff=evil merge=evil\n*.md filter=long\n"
        (self.path / ".gitattributes").write_text(attributes)
        self.git("add", ".gitattributes", ".gitignore", "code.c", "README.md")
        self.git("commit", "--quiet", "--message", "Begin")
        (self.path / "code.c").write_text("two\n")
        (self.path / ".git" / "info" / "attributes").write_text(attributes)
        for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
            path = self.path / ".git" / "hooks" / hook
            path.write_text(self.program.read_text())
            path.chmod(0o755)
        self._configure(self.path / ".git" / "config")

    def _add_embedded_repositories(self) -> None:
        vendor = self.path / "vendor"
        vendor.mkdir()
        self.git("init", "--quiet", folder=vendor)
        self._configure(vendor / ".git" / "config")
        # A folder that looks like a bare repository needs no `.git`, so a plain clone can bring it.
        bare = self.path / "bare"
        for folder in ("refs/heads", "objects"):
            (bare / folder).mkdir(parents=True)
        (bare / "HEAD").write_text("ref: refs/heads/main\n")
        (bare / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n")
        self._configure(bare / "config")
        # A file `.git` that names the repository of somebody else.
        private = self.secret.parent / "private"
        private.mkdir()
        self.git("init", "--quiet", folder=private)
        (private / "diary.txt").write_text(f"{SECRET}\n")
        self.git("add", ".", folder=private)
        self.git("commit", "--quiet", "--message", SECRET, folder=private)
        (self.path / "elsewhere").mkdir()
        (self.path / "elsewhere" / ".git").write_text(f"gitdir: {private / '.git'}\n")

    def _configure(self, config: Path) -> None:
        program = self.program
        with config.open("a") as file:
            file.write(
                f"[core]\n\tfsmonitor = {program}\n\thooksPath = {self.path}/.git/hooks\n\tpager = {program}\n"
                f"\tsshCommand = {program}\n\teditor = {program}\n\taskPass = {program}\n"
                f"[pager]\n\tdiff = {program}\n\tls-files = {program}\n\tstatus = {program}\n"
                f'[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n'
                f'[filter "long"]\n\tprocess = {program}\n\trequired = true\n'
                f'[diff]\n\texternal = {program}\n[diff "evil"]\n\tcommand = {program}\n\ttextconv = {program}\n'
                f'[merge "evil"]\n\tdriver = {program}\n[credential]\n\thelper = {program}\n'
                f"[alias]\n\tls-files = !{program}\n\tdiff = !{program}\n"
            )


def _bytes_read() -> int:
    """The bytes that this process has read, as Linux counts them; 0 elsewhere."""
    with suppress(OSError):
        lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(lines["rchar"])
    return 0


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTILE_TEST_KEY", "in the environment")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return HostileFolder(tmp_path)
