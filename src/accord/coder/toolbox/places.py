"""Where tools may look by themselves: in the session's folders. Files of the client have checks of their own."""

from __future__ import annotations

from pathlib import Path

from accord.coder.toolbox.definition import ToolUse
from accord.errors import AccordError


class OutsideFolders(AccordError):
    """The model wants to look outside of the session's folders."""


def place(use: ToolUse, named: str) -> Path:
    """The real path of what the model names; raises OutsideFolders."""
    path = Path(use.turn.session.resolve(named)).resolve()
    if not any(path.is_relative_to(root) for root in use.turn.session.roots.folders):
        raise OutsideFolders(f"{named} is outside of the session's folders")
    return path
