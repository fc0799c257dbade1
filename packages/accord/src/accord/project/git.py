"""Asks git about a repository without running anything that the repository names.

The problem: a folder's `.git/config` names programs, and git runs them: `core.fsmonitor` for a list of files, `clean`
and `process` filters and `textconv` for a diff, hooks, `core.sshCommand` and remote helpers where objects are missing,
and each submodule brings a configuration of its own. A list of settings to override is never complete.

The rule: git never reads the folder's configuration. It gets a git directory of ours (`_view`), with only the commit
that HEAD names and the patterns of `.git/info/exclude`, and reads objects, index and working tree in the folder.
Attributes then name filters and drivers that nothing defines, so none runs. Of the user's own settings only plain
values are used, such as `core.autocrlf`.

A new worktree must be registered in the repository itself. This one command reads its configuration, so hooks and other
programs are switched off by name, and the files are checked out by the rule above.

Nothing runs before the user trusts the folder. The repository is the nearest `.git` at or above the session's folder:
found by name, without git; never through a link, never one of another owner above the folder, and never a folder that
merely looks like a bare repository.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from accord.errors import AccordError
from accord.project.project import Project
from accord.transports.launch import program_file

WITHIN = 10.0
"""Seconds for a command that only looks."""
CHECKOUT_WITHIN = 300.0
"""Seconds for a checkout, which may be large."""
MOST_OUTPUT = 16 * 1024 * 1024
"""Bytes of git's output that are read."""
MOST_REFERENCES = 16 * 1024 * 1024
"""Bytes of `packed-refs` that are read."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OWN_VALUES = r"^core\.(autocrlf|eol|excludesfile|ignorecase|precomposeunicode)$"

_WITHOUT_PROGRAMS = tuple(
    word
    for setting in (
        f"core.hooksPath={os.devnull}",
        f"core.attributesFile={os.devnull}",
        "core.fsmonitor=false",
        "core.pager=cat",
        "core.editor=false",
        "core.askPass=false",
        "core.sshCommand=false",
        "credential.helper=",
        "diff.external=",
        "gc.auto=0",
        "maintenance.auto=false",
        "protocol.allow=never",
        "safe.bareRepository=explicit",
        "submodule.recurse=false",
    )
    for word in ("-c", setting)
)
"""Settings that override those of a repository that name programs."""


class Repository(NamedTuple):
    """A repository as its files describe it, without git."""

    root: Path
    """The top folder of the working tree."""
    git_dir: Path
    """Its git directory: HEAD and index."""
    common_dir: Path
    """The git directory that it shares with other worktrees: objects and branches."""


class FolderNotTrusted(AccordError):
    """Git was asked about a folder that the user has not trusted."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        elsewhere = (
            "" if repository.git_dir == repository.root / ".git" else f" (a worktree of {repository.common_dir})"
        )
        super().__init__(
            f"git was not run: the folder {repository.root}{elsewhere} is not trusted; answer the question in a "
            "terminal, or start `accord chat --trust` there"
        )


def top_folder(folder: Path) -> Path | None:
    """Return the nearest folder, this one or one above, with a `.git`; None if there is none, or it has
    another owner.
    """
    start = Path(os.path.realpath(folder))
    for place in (start, *start.parents):
        with suppress(OSError):
            found = (place / ".git").lstat()
            # As git does, so that a world-writable folder does not decide for the folders below it.
            is_ours = place == start or os.name == "nt" or found.st_uid in (os.geteuid(), 0)
            return place if is_ours and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)) else None
    return None


def find_repository(folder: Path) -> Repository | None:
    """The repository that a folder belongs to."""
    top = top_folder(folder)
    if top is None or (top / ".git").is_file():
        return None if top is None else _worktree(top)
    return Repository(top, top / ".git", top / ".git")


def _worktree(place: Path) -> Repository | None:
    """The repository that a file `.git` names, if that repository lists the folder among its worktrees."""
    line = _line(place, ".git")
    if line is None or not line.startswith("gitdir: "):
        return None
    git_dir = Path(os.path.realpath(place / line.removeprefix("gitdir: ")))
    back = _line(git_dir, "gitdir")
    if back is None or os.path.realpath(git_dir / back) != str(place / ".git") or git_dir.parent.name != "worktrees":
        return None
    return Repository(place, git_dir, git_dir.parent.parent)


def _line(folder: Path, name: str) -> str | None:
    """Return the only line of a small file; None if there is no such file."""
    with suppress(OSError, ValueError):
        return Project([folder]).read(folder / name, 4096).decode().rstrip("\n")
    return None


class Git:
    """Git, for one folder. Raises ValueError for a folder without a repository, FolderNotTrusted for an
    untrusted one.
    """

    def __init__(self, folder: Path, trusts: Callable[[Repository], bool], *, within: float = WITHIN) -> None:
        repository = find_repository(folder)
        if repository is None:
            raise ValueError(f"not a git repository: {folder}")
        if not trusts(repository):
            raise FolderNotTrusted(repository)
        self.repository = repository
        self._folder = folder
        self._within = within

    def files(self) -> list[str]:
        """The files below the folder that git knows, and the new ones that it does not ignore."""
        return self._names("--cached", "--others", "--exclude-standard")

    def new_files(self) -> list[str]:
        """The files below the folder that git does not know and does not ignore."""
        return self._names("--others", "--exclude-standard")

    def _names(self, *options: str) -> list[str]:
        return [name for name in self._look("ls-files", "-z", *options).split("\0") if name]

    def diff(self, *options: str) -> str:
        """The changes of the working tree below the folder since the last commit."""
        # In a repository without a commit there is no HEAD: the index is compared with nothing.
        since = "HEAD" if self.head else "--cached"
        plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
        return self._look("diff", *plain, *options, since, "--", ".")

    def count_changes(self) -> int:
        """Count the files of the working tree that are changed or new since the last commit."""
        whole = Git(self.repository.root, lambda _: True, within=self._within)
        return whole.diff("--name-only", "-z").count("\0") + len(whole.new_files())

    @cached_property
    def head(self) -> str | None:
        """Return the commit that HEAD names; None if there is none yet."""
        line = _line(self.repository.git_dir, "HEAD")
        for _ in range(5):  # as many symbolic references as git follows
            if line is None or _COMMIT.fullmatch(line):
                return line
            if not line.startswith("ref: refs/") or ".." in line:
                return None
            name = line.removeprefix("ref: ")
            line = _line(self.repository.common_dir, name) or self._packed(name)
        return None

    @property
    def branch(self) -> str | None:
        """Return the branch that HEAD names; None if it names a commit."""
        line = _line(self.repository.git_dir, "HEAD") or ""
        return line.removeprefix("ref: refs/heads/") if line.startswith("ref: refs/heads/") else None

    def _packed(self, name: str) -> str | None:
        common = self.repository.common_dir
        with suppress(OSError, ValueError):
            packed = Project([common]).read(common / "packed-refs", MOST_REFERENCES).decode("utf-8", "replace")
            return next((line.split(" ")[0] for line in packed.splitlines() if line.endswith(f" {name}")), None)
        return None

    def add_worktree(self, path: Path, branch: str) -> list[str]:
        """Make a worktree of the last commit, on a new branch; returns the files whose filters were not run."""
        if self.head is None:
            raise ValueError("it has no commit yet; commit something first")
        real = {"GIT_DIR": str(self.repository.git_dir), "GIT_WORK_TREE": str(self.repository.root)}
        adding = ("worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b", branch, str(path), self.head)
        _run([*_WITHOUT_PROGRAMS, *adding], self.repository.root, real, CHECKOUT_WITHIN)
        try:
            made = Git(path, lambda _: True, within=CHECKOUT_WITHIN)
            made._look("read-tree", "--reset", "-u", self.head)
            unfiltered = set(made._names(":(attr:!filter)"))
            return [name for name in made._names() if name not in unfiltered]
        except BaseException:
            for undoing in (("worktree", "remove", "--force", str(path)), ("branch", "-D", branch)):
                with suppress(ValueError):
                    _run([*_WITHOUT_PROGRAMS, *undoing], self.repository.root, real, WITHIN)
            raise

    def _look(self, *arguments: str) -> str:
        with self._view() as variables:
            return _run(arguments, self._folder, variables, self._within)

    @contextmanager
    def _view(self) -> Generator[dict[str, str]]:
        """A git directory of ours for this repository, as variables for git."""
        repository = self.repository
        for path in (repository.git_dir / "index", repository.common_dir / "objects" / "info" / "alternates"):
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise ValueError(f"{path} is not a regular file, so git was not run")  # it would wait for a pipe
        own = Path(tempfile.mkdtemp(prefix="accord-git-"))
        try:
            (own / "refs").mkdir()
            (own / "info").mkdir()
            (own / "HEAD").write_text(f"{self.head or 'ref: refs/heads/main'}\n")
            is_long = self.head is not None and len(self.head) == 64
            (own / "config").write_text(_config(is_long=is_long))
            with suppress(OSError, ValueError):
                common = repository.common_dir
                (own / "info" / "exclude").write_bytes(Project([common]).read(common / "info" / "exclude", 1024 * 1024))
            variables = {
                "GIT_DIR": str(own),
                "GIT_WORK_TREE": str(repository.root),
                "GIT_INDEX_FILE": str(repository.git_dir / "index"),
                "GIT_OBJECT_DIRECTORY": str(repository.common_dir / "objects"),
            }
            values = _run(
                ("config", "--includes", "-z", "--get-regexp", _OWN_VALUES),
                own,
                {"GIT_DIR": str(own)},
                WITHIN,
                own=True,
            )
            pairs = [pair.split("\n", 1) for pair in values.split("\0") if "\n" in pair]
            variables["GIT_CONFIG_COUNT"] = str(len(pairs))
            for number, (key, value) in enumerate(pairs):
                variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
            yield variables
        finally:
            shutil.rmtree(own, ignore_errors=True)


def _config(*, is_long: bool) -> str:
    """Return the configuration of a view: the one that `git init` would write on this platform."""
    lines = ["[core]", f"repositoryformatversion = {int(is_long)}", "bare = false", "bigFileThreshold = 16m"]
    lines += ["fileMode = false", "symlinks = false", "ignoreCase = true"] if os.name == "nt" else []
    lines += ["[extensions]", "objectFormat = sha256"] if is_long else []
    return "\n".join([*lines, "[diff]", "autoRefreshIndex = false", ""])


def _run(arguments: Sequence[str], folder: Path, variables: dict[str, str], within: float, *, own: bool = False) -> str:
    """Return git's output; raises ValueError with git's message if it fails. `own` lets it read the user's settings."""
    program = program_file("git")
    if program is None:
        raise ValueError("git cannot be run here: it is not installed")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    env |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_PAGER": "cat", "GIT_ATTR_NOSYSTEM": "1"}
    if not own:
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    try:
        running = subprocess.Popen(
            [program, *arguments],
            cwd=folder,
            env=env | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise ValueError(f"git cannot be run here: {error}") from error
    late = threading.Event()

    def end() -> None:
        late.set()
        running.kill()

    timer = threading.Timer(within, end)
    timer.start()
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        printed = running.stdout.read(MOST_OUTPUT)
        is_cut = len(printed) == MOST_OUTPUT
        if is_cut:
            running.kill()
        said = running.stderr.read(64 * 1024).decode("utf-8", "replace").strip().splitlines()
        running.kill() if is_cut else running.wait()
        timer.cancel()
    if late.is_set():
        raise ValueError(f"git was ended after {within:g} s")
    if running.returncode and not is_cut and not (own and running.returncode == 1):  # 1: no such setting
        raise ValueError(said[-1] if said else f"git ended with {running.returncode}")
    return printed.decode("utf-8", "replace")
