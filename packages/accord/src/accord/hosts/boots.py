"""Which run of the machine this is: a text that stays the same until the machine starts again.

Monotonic clocks begin again with the machine, so times in a file are worth nothing after a restart. The time of the
start is no such text: it is computed from the clock of the day, which can be set. So each platform is asked for what it
counts or draws at its start; the answer is empty where it has nothing of the kind.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":

    def boot_id() -> str:
        """The number of starts that Windows keeps in the registry; empty if it keeps none."""
        import winreg

        folder = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
        with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, folder) as key:
            return f"windows-{winreg.QueryValueEx(key, 'BootId')[0]}"
        return ""

elif sys.platform == "darwin":

    def boot_id() -> str:
        """The UUID that the kernel of macOS draws when it starts; empty if it does not tell one."""
        import ctypes

        room, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        with suppress(AttributeError):
            if not ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", room, ctypes.byref(size), None, 0):
                return room.value.decode("ascii", "replace")
        return ""

else:

    def boot_id() -> str:
        """The UUID that the kernel draws when it starts; empty if it does not tell one."""
        with suppress(OSError):
            return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return ""
