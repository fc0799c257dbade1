"""`RecordingPlan`: where and how a recording is written."""

from __future__ import annotations

import msgspec

LARGEST_FILE = 256 * 1024 * 1024
"""Bytes of one file of a recording, before the next part begins."""
LARGEST_FOLDER = 2 * 1024 * 1024 * 1024
"""Bytes of all kept traces, before the oldest are removed."""


class RecordingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a recorder writes; it goes to the recorder's process as JSON."""

    path: str | None = None
    """The file that the user named; None for one in the folder of kept traces."""
    command: tuple[str, ...] = ()
    cwd: str = ""
    secrets: bool = False
    """Whether secrets are recorded instead of masked."""
    compress: bool = False
    """Whether each file is compressed with gzip when it is complete."""
    most_file: int = LARGEST_FILE
    most_folder: int = LARGEST_FOLDER
    most_parts: int = 0
    """Bytes of all parts of a named file, before the oldest are removed; 0 for no limit."""
    role: str = "tap"
    """The role in the header: who records."""
    peer: str = ""
    """The peer in the header; by default the command."""
    is_beside: bool = False
    """Whether the recorder runs beside other work, which must not wait while a file is compressed."""
    started: str = ""
    began: float = 0.0
    """The same moment on the clock of `time.monotonic`."""
    pid: int = 0
    """The process of the tap."""
