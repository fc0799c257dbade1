"""The calls of the Windows kernel that Accord needs and Python lacks: jobs, and processes that start suspended."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

SET_QUOTA, TERMINATE, SUSPEND_RESUME = 0x0100, 0x0001, 0x0800

KILL_ON_CLOSE = 0x2000
"""The limit of a job that ends its processes when its last handle is closed, also by the end of the holder."""

_CTRL_BREAK = 1
_ACCOUNTING, _EXTENDED_LIMITS = 1, 9


class ExtendedLimits(ctypes.Structure):
    """`JOBOBJECT_EXTENDED_LIMIT_INFORMATION`, of which only the flags are set."""

    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", ctypes.c_uint32),
        ("working_set", ctypes.c_size_t * 2),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priorities", ctypes.c_uint32 * 2),
        ("io_counters", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


class Accounting(ctypes.Structure):
    """`JOBOBJECT_BASIC_ACCOUNTING_INFORMATION`."""

    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("page_faults", ctypes.c_uint32),
        ("processes", ctypes.c_uint32),
        ("active", ctypes.c_uint32),
        ("terminated", ctypes.c_uint32),
    )


class Kernel32:
    """The functions of `kernel32.dll` and `ntdll.dll`. Handles are numbers; a call that fails raises OSError."""

    def __init__(self, kernel32: Any, ntdll: Any) -> None:
        self._kernel32, self._ntdll = kernel32, ntdll
        # Without these, handles would be cut to 32 bits.
        handle, number = ctypes.c_void_p, ctypes.c_uint32
        for function, result, arguments in (
            (kernel32.CreateJobObjectW, handle, (handle, ctypes.c_wchar_p)),
            (kernel32.SetInformationJobObject, number, (handle, number, handle, number)),
            (kernel32.QueryInformationJobObject, number, (handle, number, handle, number, handle)),
            (kernel32.AssignProcessToJobObject, number, (handle, handle)),
            (kernel32.TerminateJobObject, number, (handle, number)),
            (kernel32.OpenProcess, handle, (number, number, number)),
            (kernel32.CloseHandle, number, (handle,)),
            (kernel32.GetConsoleCP, number, ()),
            (kernel32.GenerateConsoleCtrlEvent, number, (number, number)),
            (ntdll.NtResumeProcess, ctypes.c_int32, (handle,)),
        ):
            function.restype, function.argtypes = result, arguments

    def create_job(self) -> int:
        """Create a job whose processes end with its handle; children of its processes belong to it and cannot
        leave it.
        """
        job: int | None = self._kernel32.CreateJobObjectW(None, None)
        if not job:
            raise _failed("CreateJobObject")
        limits = ExtendedLimits(flags=KILL_ON_CLOSE)
        size = ctypes.sizeof(limits)
        if not self._kernel32.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), size):
            error = _failed("SetInformationJobObject")
            self.close(job)
            raise error
        return job

    def add_process(self, job: int, process_id: int) -> None:
        """Put a suspended process into the job, then let it run."""
        process: int | None = self._kernel32.OpenProcess(SET_QUOTA | TERMINATE | SUSPEND_RESUME, 0, process_id)
        if not process:
            raise _failed("OpenProcess")
        try:
            if not self._kernel32.AssignProcessToJobObject(job, process):
                raise _failed("AssignProcessToJobObject")
            # `ResumeThread` would need the handle of the first thread, which `subprocess` closes.
            if (status := self._ntdll.NtResumeProcess(process)) < 0:
                raise OSError(0, f"NtResumeProcess failed with status {status & 0xFFFFFFFF:#x}")
        finally:
            self.close(process)

    def active_processes(self, job: int) -> int:
        found = Accounting()
        size = ctypes.sizeof(found)
        if not self._kernel32.QueryInformationJobObject(job, _ACCOUNTING, ctypes.byref(found), size, None):
            raise _failed("QueryInformationJobObject")
        return int(found.active)

    def terminate_job(self, job: int) -> None:
        if not self._kernel32.TerminateJobObject(job, 1):
            raise _failed("TerminateJobObject")

    def close(self, handle: int) -> None:
        self._kernel32.CloseHandle(handle)

    def has_console(self) -> bool:
        """Whether this process has a console, which its children share."""
        return bool(self._kernel32.GetConsoleCP())

    def send_break(self, process_id: int) -> None:
        """Send Ctrl-Break to the process group that this process leads."""
        # Not `os.kill`: if the event cannot be sent, CPython 3.11 ends the process and raises SystemError.
        if not self._kernel32.GenerateConsoleCtrlEvent(_CTRL_BREAK, process_id):
            raise _failed("GenerateConsoleCtrlEvent")


if sys.platform == "win32":

    def _failed(call: str) -> OSError:
        number = ctypes.get_last_error()
        return OSError(0, f"{call} failed: {ctypes.FormatError(number).strip()}", None, number)

    def kernel() -> Kernel32:
        """The kernel of this machine."""
        return Kernel32(ctypes.WinDLL("kernel32", use_last_error=True), ctypes.WinDLL("ntdll"))

else:

    def _failed(call: str) -> OSError:
        return OSError(0, f"{call} failed")
