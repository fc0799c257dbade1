"""The folder for a user's data on each platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """The folder for Accord's data: below XDG_DATA_HOME if it is set, else the platform's default."""
    named = os.environ.get("XDG_DATA_HOME", "")
    if named and Path(named).is_absolute():  # XDG Base Directory: relative paths are ignored
        return Path(named) / "accord"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) / "accord" if local else Path.home() / "AppData" / "Local" / "accord"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "accord"
    return Path.home() / ".local" / "share" / "accord"
