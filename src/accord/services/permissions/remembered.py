"""Answers that are to hold always, in a file of the user's: by program, by folder and by what was asked.

The file is JSON: `permissions.json` in `$XDG_STATE_HOME/accord`, else in `~/.local/state/accord`.

    {"version": 2, "answers": [
      {"program": "/usr/bin/claude 0f3a…", "agent": "Claude Code", "folder": "/home/me/project",
       "kind": "execute", "what": "npm test", "allowed": true, "at": "2026-11-21T12:00:00+00:00"}]}

`program` is what the agent is (`Target.program`): the real path of its program with a digest of its command line, the
origin of its URL, or its module. `agent` is what it calls itself, for people to read: any program may say any name.
Answers of version 1 knew that name alone, so they hold no more: the user is asked again.

It is replaced as a whole, by one process at a time (a lock on the file beside it), and is the user's to edit.

What an answer covers is kept narrow: a command holds for that command alone. Looking at files and editing them holds
for all files of the session's folders, where the tool call names its files; anything else for the same kind and title.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from accord.services.files.atomic import replace_own
from accord.services.permissions.question import PermissionQuestion
from accord.tasks import log

_FILES: tuple[str, ...] = ("read", "search", "edit")


class RememberedAnswer(msgspec.Struct, frozen=True):
    """One answer, as it stands in the file."""

    program: str
    folder: str
    kind: str
    what: str
    allowed: bool
    at: str
    agent: str = ""


VERSION = 2


class _Version(msgspec.Struct):
    version: int = 1


class _Document(msgspec.Struct):
    version: int = VERSION
    answers: list[RememberedAnswer] = []


class RememberedAnswers:
    """The file, read anew for each question: another program may have changed it.

    remembered = accord.RememberedAnswers()           # the user's own file
    client = accord.Client(permissions=accord.Permissions(ask_me, remembered=remembered))
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = state_folder() / "permissions.json" if path is None else Path(path)

    def recall(self, question: PermissionQuestion) -> bool | None:
        """What is to hold for this, if anything."""
        key = _key(question)
        for answer in reversed(self._read().answers):
            if (answer.program, answer.folder, answer.kind, answer.what) == key:
                return answer.allowed
        return None

    def remember(self, question: PermissionQuestion, *, allowed: bool) -> None:
        """From now on this holds, in place of what held before."""
        key = _key(question)
        with _locked(self.path):
            document = self._read(strict=True)
            kept = [it for it in document.answers if (it.program, it.folder, it.kind, it.what) != key]
            now = datetime.now(UTC).isoformat(timespec="seconds")
            document.answers = [*kept, RememberedAnswer(*key, allowed, now, question.session.agent)]
            replace_own(self.path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")

    def forget(self) -> None:
        """Forget everything."""
        with _locked(self.path), suppress(FileNotFoundError):
            self.path.unlink()

    def __iter__(self) -> Generator[RememberedAnswer]:
        yield from self._read().answers

    def _read(self, *, strict: bool = False) -> _Document:
        try:
            data = self.path.read_bytes()
            version = msgspec.json.decode(data, type=_Version).version
            if version == 1:
                log.warning("%s has answers by names that agents gave themselves: they hold no more", self.path)
                return _Document()
            if version == VERSION:
                return msgspec.json.decode(data, type=_Document)
        except FileNotFoundError:
            return _Document()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            if strict:  # what cannot be read must not be overwritten
                raise ValueError(f"{self.path} cannot be read: {error}") from error
            log.warning("%s cannot be read (%s): nothing is remembered", self.path, error)
            return _Document()
        if strict:
            raise ValueError(f"{self.path} is of version {version}, not {VERSION}")
        return _Document()


def state_folder() -> Path:
    """Where programs of this user keep what they remember."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "accord"
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".local" / "state") / "accord"


def _key(question: PermissionQuestion) -> tuple[str, str, str, str]:
    session, call = question.session, question.tool_call
    return session.program, os.path.realpath(session.cwd), call.kind, _what(question)


def _what(question: PermissionQuestion) -> str:
    command = question.command
    if command is not None:
        return command if isinstance(command, str) else msgspec.json.encode(command).decode()
    if question.tool_call.kind in _FILES and question.paths:
        roots = question.session.roots
        if all(path in roots for path in question.paths):
            return "any file of the session's folders"
    return question.tool_call.title


@contextmanager
def _locked(path: Path) -> Generator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(lock)
        yield
    finally:
        os.close(lock)  # which gives the lock back


if sys.platform == "win32":

    def _lock(fd: int) -> None:
        import msvcrt

        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)

else:

    def _lock(fd: int) -> None:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX)
