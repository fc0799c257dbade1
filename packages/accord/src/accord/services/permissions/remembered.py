"""Remembers the user's answers that hold always, in a file: by program, by folder and by what was asked.

The file is JSON: `permissions.json` in `$XDG_STATE_HOME/accord`, else in `~/.local/state/accord`.

    {"version": 2, "answers": [
      {"program": "/usr/bin/claude 0f3a…", "agent": "Claude Code", "folder": "/home/me/project",
       "kind": "execute", "what": "npm test", "allowed": true, "at": "2026-11-21T12:00:00+00:00"}]}

`program` identifies the agent (`Target.program`): the real path of its program with a digest of its command line, the
origin of its URL, or its module. `agent` is the name that the agent gives itself, for people to read; any program may
give itself any name. Files of version 1 have only that name, so their answers are ignored and the user is asked again.

`folder` is where the session works, or `*` for an answer that holds in every folder.

Each change replaces the whole file, by one process at a time (a lock file beside it). The user may edit the file.

An answer covers little. An answer about a command holds for exactly this command. An answer about reading or editing
files holds for all files in the session's folders, if the tool call names its files. Any other answer holds for the
same kind and title.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from accord._internal.tasks import log
from accord.folders import locked, state_folder
from accord.services.files.atomic import replace_own
from accord.services.permissions.question import PermissionQuestion

EVERYWHERE = "*"
"""What stands for the folder of an answer that holds in every folder."""

_FILES: tuple[str, ...] = ("read", "search", "edit")


class RememberedAnswer(msgspec.Struct, frozen=True):
    """One answer in the file."""

    program: str
    folder: str
    kind: str
    what: str
    allowed: bool
    at: str
    agent: str = ""


VERSION = 2
"""The version of the file that is read and written."""


class _Version(msgspec.Struct):
    version: int = 1


class _Document(msgspec.Struct):
    version: int = VERSION
    answers: list[RememberedAnswer] = []


class RememberedAnswers:
    """The file of remembered answers, read again for each question because another program may have changed it.

    remembered = accord.RememberedAnswers()           # the user's own file
    client = accord.Client(permissions=accord.Permissions(ask_me, remembered=remembered))
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = state_folder() / "permissions.json" if path is None else Path(path)
        """The file of the answers."""

    def recall(self, question: PermissionQuestion) -> bool | None:
        """The remembered answer to this question: allowed or not; None if it was never answered."""
        program, folder, kind, what = _key(question)
        found = {
            it.folder: it.allowed
            for it in self._read().answers
            if (it.program, it.kind, it.what) == (program, kind, what)
        }
        return found.get(folder, found.get(EVERYWHERE))

    def remember(self, question: PermissionQuestion, *, allowed: bool, everywhere: bool = False) -> None:
        """Remember an answer, in place of an earlier one: for the session's folder, or `everywhere`.

        An answer for a folder counts more there than one for everywhere.
        """
        program, folder, kind, what = _key(question)
        key = (program, EVERYWHERE if everywhere else folder, kind, what)
        with locked(self.path):
            document = self._read(strict=True)
            others = [it for it in document.answers if (it.program, it.folder, it.kind, it.what) != key]
            now = datetime.now(UTC).isoformat(timespec="seconds")
            document.answers = [*others, RememberedAnswer(*key, allowed, now, question.session.agent)]
            replace_own(self.path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")

    def forget(self, answer: RememberedAnswer | None = None) -> None:
        """Forget one answer, or all."""
        if answer is not None:
            with locked(self.path):
                document = self._read(strict=True)
                document.answers = [it for it in document.answers if it != answer]
                replace_own(self.path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")
            return
        with locked(self.path), suppress(FileNotFoundError):
            self.path.unlink()

    def __iter__(self) -> Generator[RememberedAnswer]:
        yield from self._read().answers

    def _read(self, *, strict: bool = False) -> _Document:
        try:
            data = self.path.read_bytes()
            version = _read_version(data).version
            if version == 1:
                log.warning(
                    "%s has version 1, whose answers are tied to agents' names; they are ignored",
                    self.path,
                )
                return _Document()
            if version == VERSION:
                return _read_document(data)
        except FileNotFoundError:
            return _Document()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            if strict:  # a file that cannot be read must not be overwritten
                raise ValueError(f"{self.path} cannot be read: {error}") from error
            log.warning("cannot read %s (%s); no remembered answer applies", self.path, error)
            return _Document()
        if strict:
            raise ValueError(f"{self.path} has version {version}, but only version {VERSION} is supported")
        return _Document()


def _key(question: PermissionQuestion) -> tuple[str, str, str, str]:
    session, call = question.session, question.tool_call
    return session.program, os.path.realpath(session.cwd), call.kind, covered(question)


def covered(question: PermissionQuestion) -> str:
    """What an answer to this question covers when it is remembered."""
    command = question.command
    if command is not None:
        return command if isinstance(command, str) else msgspec.json.encode(command).decode()
    if question.tool_call.kind in _FILES and question.paths:
        roots = question.session.roots
        if all(path in roots for path in question.paths):
            return "any file of the session's folders"
    return question.tool_call.title


# Made at import: msgspec's first look at a class is not safe in two threads.
_read_version = msgspec.json.Decoder(_Version).decode
_read_document = msgspec.json.Decoder(_Document).decode
