"""`Recording`: the files of one recording: one after another when they are large, compressed when they are complete."""

from __future__ import annotations

import os
import shutil
import threading
from datetime import datetime
from pathlib import Path

from accord import TraceEvent, TraceFile, __version__
from accord.trace import FORMAT, TraceHeader
from accord_tools.tap.kept import make_room, new_path, part_path
from accord_tools.tap.live import Announcement
from accord_tools.tap.plan import RecordingPlan


class Recording:
    """Writes events to the files that a plan names."""

    def __init__(self, plan: RecordingPlan) -> None:
        self.announcement: Announcement | None = None
        """The descriptor that names the file that is being written."""
        self._plan = plan
        self._compresses = plan.compress or (plan.path or "").endswith(".gz")
        self._is_kept = plan.path is None
        named = None if plan.path is None else Path(plan.path.removesuffix(".gz"))
        self._first = named or new_path(plan.command, datetime.fromisoformat(plan.started), plan.pid)
        self._part = 0
        self._problem: OSError | None = None
        self._compressing: list[threading.Thread] = []
        self._next()

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return part_path(self._first, self._part)

    @property
    def problem(self) -> OSError | None:
        """Why the recording has ended; None while it goes on."""
        return self._problem or self._file.problem

    def __call__(self, event: TraceEvent) -> None:
        """Record this event: a recording is an observer."""
        self.add(event)

    def add(self, event: TraceEvent) -> None:
        """Record this event."""
        if self._file.size > self._plan.most_file and self._file.problem is None:
            self._close()
            self._next()
            if self.announcement is not None:
                self.announcement.update(trace=str(self.path.absolute()))
        self._file(event)

    def close(self) -> None:
        """Complete the last file, and wait until all are compressed."""
        self._close()
        for thread in self._compressing:
            thread.join()

    def _next(self) -> None:
        self._part += 1
        if self._is_kept:
            make_room(self._plan.most_folder)
        elif self._plan.most_parts:
            self._remove_oldest_parts()
        self._file = TraceFile(self.path, secrets=self._plan.secrets, header=self._header(), began=self._plan.began)

    def _header(self) -> TraceHeader:
        plan = self._plan
        return TraceHeader(
            FORMAT,
            plan.started,
            plan.role,
            peer=plan.peer or " ".join(plan.command),
            tool=f"accord {__version__}",
            command=plan.command,
            cwd=plan.cwd,
            part=self._part,
        )

    def _close(self) -> None:
        self._file.close()
        if not self._compresses or self._file.problem is not None:
            return
        if not self._plan.is_beside:
            self._compress(self.path)
            return
        thread = threading.Thread(target=self._compress, args=(self.path,), name="accord recording: compress")
        self._compressing.append(thread)
        thread.start()

    def _compress(self, path: Path) -> None:
        try:
            compress(path)
        except OSError as error:
            self._problem = error

    def _remove_oldest_parts(self) -> None:
        """Make room for one more part. The first part is as old as any other one."""
        room = self._plan.most_parts - self._plan.most_file
        for part in range(self._part - 1, 0, -1):
            path = part_path(self._first, part)
            written = next((it for it in (path, path.with_name(f"{path.name}.gz")) if it.exists()), None)
            if written is None:
                return
            room -= written.stat().st_size
            if room < 0:
                written.unlink(missing_ok=True)


def compress(path: Path) -> None:
    """Replace a file by its compressed form, which is complete when it has its name."""
    import gzip

    target = path.with_name(f"{path.name}.gz")
    hidden = target.with_name(f"{target.name}.new")
    fd = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb") as packed, path.open("rb") as plain:
            shutil.copyfileobj(plain, packed, 1 << 20)
        hidden.replace(target)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise
    path.unlink()
