"""Jobs: how the processes that a program starts are ended on Windows, as process groups and the guard do elsewhere.

Windows keeps no tree of processes: the children of a wrapper such as `npx` survive it. So each program that we start
is put into a job before it runs its first instruction. Whatever it starts belongs to the job as well and cannot leave
it. The job ends its processes when its last handle closes. Only we hold one, so the kernel ends the job also when we
are killed; no process has to watch us.
"""

from __future__ import annotations

import weakref

from accord.windows.kernel32 import Kernel


class Job:
    """The processes of one program. They end at the latest with this object."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._handle = kernel.create_job()
        self.close = weakref.finalize(self, kernel.close, self._handle)
        """Close the handle, which ends all processes that are left. Idempotent."""

    def add(self, process_id: int) -> None:
        """Put a suspended process into the job and let it run."""
        self._kernel.add_process(self._handle, process_id)

    def is_empty(self) -> bool:
        """Whether all processes have ended."""
        return not self.close.alive or self._kernel.active_processes(self._handle) == 0

    def terminate(self) -> None:
        """End all processes at once."""
        if self.close.alive:
            self._kernel.terminate_job(self._handle)
