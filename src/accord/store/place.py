"""Where a user's data belongs on each platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """The folder of Accord's data: XDG_DATA_HOME where it is set, else the platform's custom."""
    named = os.environ.get("XDG_DATA_HOME", "")
    if named and Path(named).is_absolute():  # the standard has relative ones ignored
        return Path(named) / "accord"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) / "accord" if local else Path.home() / "AppData" / "Local" / "accord"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "accord"
    return Path.home() / ".local" / "share" / "accord"
