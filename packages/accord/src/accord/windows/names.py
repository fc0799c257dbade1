r"""Names of files that Windows reads in a special way, and the paths that its kernel tells. PURE.

Windows removes dots and spaces at the end of a name, takes `NUL.txt` for a device and `notes.txt:hidden` for a second
content of a file. So the name that was checked would not be the file that is opened, and such names are refused.
"""

from __future__ import annotations

import re

_FORBIDDEN = re.compile(r'[<>"/\\|?*\x00-\x1f]')

_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9\u00b9\u00b2\u00b3])[ ]*([.:].*)?", re.IGNORECASE)

NAME_SURROGATE = 0x20000000
"""The bit of a reparse tag that says that the file stands for another name, as links and junctions do."""


def why_refused(name: str) -> str | None:
    """Why a file of Windows cannot safely have this name; None if it can."""
    if _DEVICE.fullmatch(name):
        return "names a device of Windows"
    if ":" in name:
        return "names an alternate data stream"
    if name.endswith((".", " ")):
        return "ends with a dot or a space, which Windows removes"
    if _FORBIDDEN.search(name):
        return "has a character that Windows does not allow in names"
    return None


def plain_path(path: str) -> str:
    r"""A path without the prefix with which the kernel tells it: `\\?\C:\a` is `C:\a`, `\\?\UNC\s\d` is `\\s\d`."""
    if path[:8].upper() == "\\\\?\\UNC\\":
        return "\\\\" + path[8:]
    return path[4:] if re.match(r"\\\\\?\\[A-Za-z]:\\", path) else path


def is_link(attributes: int, tag: int) -> bool:
    """Whether a reparse point stands for another name. Others, such as files that are kept in a cloud, do not."""
    return bool(attributes & 0x400) and (tag == 0 or bool(tag & NAME_SURROGATE))
