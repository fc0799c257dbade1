"""Jobs of Windows, with a library in place of `kernel32.dll` that records how it is called."""

import ctypes
import gc

import pytest

from accord.windows.kernel32 import Accounting, ExtendedLimits, Kernel32
from accord.windows.processes import Job

JOB, PROCESS = 0x1_0000_0040, 0x44
FAILED = 0


class Function:
    """A function of a library: it has types, notes its arguments, and gives what it is told to."""

    def __init__(self, name, library):
        self.name, self.library = name, library

    def __call__(self, *given):
        self.library.calls.append((self.name, *given))
        if self.name == "SetInformationJobObject":
            self.library.limits = ExtendedLimits.from_buffer_copy(given[2]._obj)
        if self.name == "QueryInformationJobObject":
            given[2]._obj.active = self.library.active
        return self.library.results.get(self.name, 1)


class Library:
    """`kernel32.dll` and `ntdll.dll` in one."""

    def __init__(self, **results):
        self.calls, self.limits, self.active = [], None, 0
        self.results = {"CreateJobObjectW": JOB, "OpenProcess": PROCESS, "NtResumeProcess": 0, **results}

    def __getattr__(self, name):
        function = Function(name, self)
        setattr(self, name, function)
        return function

    @property
    def called(self):
        return [name for name, *_ in self.calls]


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def kernel(library):
    return Kernel32(library, library)


def test_the_structures_have_the_sizes_of_64_bit_windows():
    assert ctypes.sizeof(ExtendedLimits) == 144
    assert (ExtendedLimits.flags.offset, ExtendedLimits.affinity.offset) == (16, 48)
    assert ctypes.sizeof(Accounting) == 48
    assert Accounting.active.offset == 40


def test_a_job_ends_its_processes_when_its_handle_is_closed(kernel, library):
    assert kernel.create_job() == JOB
    assert library.limits.flags == 0x2000
    name, job, kind, _, size = library.calls[-1]
    assert (name, job, kind, size) == ("SetInformationJobObject", JOB, 9, 144)


def test_handles_keep_their_64_bits(library, kernel):
    assert library.CreateJobObjectW.restype is library.OpenProcess.restype is ctypes.c_void_p
    assert library.CloseHandle.argtypes == (ctypes.c_void_p,)
    kernel.close(JOB)
    assert library.calls == [("CloseHandle", JOB)]


def test_a_process_is_put_into_its_job_before_it_runs(kernel, library):
    Job(kernel).add(4711)
    assert library.called[2:6] == ["OpenProcess", "AssignProcessToJobObject", "NtResumeProcess", "CloseHandle"]
    assert library.calls[2] == ("OpenProcess", 0x0901, 0, 4711)
    assert library.calls[3] == ("AssignProcessToJobObject", JOB, PROCESS)


def test_a_process_that_cannot_be_put_into_the_job_does_not_run():
    library = Library(AssignProcessToJobObject=FAILED)
    job = Job(Kernel32(library, library))
    with pytest.raises(OSError, match="AssignProcessToJobObject failed"):
        job.add(4711)
    assert "NtResumeProcess" not in library.called
    assert library.calls[-1] == ("CloseHandle", PROCESS)


def test_a_process_that_does_not_resume_is_an_error():
    library = Library(NtResumeProcess=-1073741790)
    with pytest.raises(OSError, match="NtResumeProcess failed with status 0xc0000022"):
        Kernel32(library, library).add_process(JOB, 4711)


def test_a_job_that_cannot_be_limited_is_closed_again():
    library = Library(SetInformationJobObject=FAILED)
    with pytest.raises(OSError, match="SetInformationJobObject failed"):
        Kernel32(library, library).create_job()
    assert library.calls[-1] == ("CloseHandle", JOB)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("CreateJobObjectW", lambda kernel: kernel.create_job()),
        ("OpenProcess", lambda kernel: kernel.add_process(JOB, 1)),
        ("QueryInformationJobObject", lambda kernel: kernel.active_processes(JOB)),
        ("TerminateJobObject", lambda kernel: kernel.terminate_job(JOB)),
        ("GenerateConsoleCtrlEvent", lambda kernel: kernel.send_break(1)),
    ],
)
def test_a_call_that_fails_says_which_one(function, call):
    library = Library(**{function: FAILED})
    with pytest.raises(OSError, match=function.removesuffix("W")):
        call(Kernel32(library, library))


def test_a_job_is_empty_when_no_process_is_active(kernel, library):
    job = Job(kernel)
    library.active = 2
    assert not job.is_empty()
    library.active = 0
    assert job.is_empty()


def test_a_job_that_was_closed_is_empty_and_is_not_ended_again(kernel, library):
    job = Job(kernel)
    job.close()
    job.close()
    library.active = 1
    job.terminate()
    assert job.is_empty()
    assert library.called == ["CreateJobObjectW", "SetInformationJobObject", "CloseHandle"]


def test_a_forgotten_job_is_closed(kernel, library):
    Job(kernel)
    gc.collect()
    assert library.calls[-1] == ("CloseHandle", JOB)


def test_ctrl_break_goes_to_the_group_that_the_process_leads(kernel, library):
    kernel.send_break(4711)
    assert library.calls == [("GenerateConsoleCtrlEvent", 1, 4711)]


@pytest.mark.parametrize("code_page", [0, 65001])
def test_a_console_is_known_by_its_code_page(code_page):
    library = Library(GetConsoleCP=code_page)
    assert Kernel32(library, library).has_console() is bool(code_page)
