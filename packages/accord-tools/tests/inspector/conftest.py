import asyncio
import subprocess
import sys

import pytest

from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import TraceReader
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.inspector.chromium import PROGRAM, Chromium
from tests.inspector.recording import Recording


@pytest.fixture
def recording(tmp_path):
    return Recording(tmp_path / "wire.jsonl")


@pytest.fixture
def indexed():
    """Index a recording as it is now."""
    readers = []

    def index(recording):
        readers.append(TraceReader(recording.path))
        made = TraceIndex(readers[-1])
        made.grow_whole()
        return made

    yield index
    for reader in readers:
        reader.close()


@pytest.fixture(scope="session")
def chromium():
    if PROGRAM is None:
        pytest.skip("Chromium is not installed: .ci/packages installs it")
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture
def inspect():
    """Run `accord inspect` with these arguments; gives the URL of its page."""
    running = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "accord", "inspect", *map(str, arguments)], stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        return process.stdout.readline().split()[-1]

    yield start
    for process in running:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


@pytest.fixture
def show(chromium, inspect):
    """Open the page of these traces; gives it when its first messages are shown."""
    pages = []

    def open_page(*files, **options):
        page = chromium.page(**options)
        pages.append(page)
        page.open(inspect(*files))
        page.until("/[1-9][0-9,]* message/.test(document.querySelector('#status').innerText)")
        return page

    yield open_page
    for page in pages:
        page.close()


async def fetch(url, path="/", *, headers=None, method="GET"):
    """One request, written by hand, because its headers are what matters."""
    host, port = url.removeprefix("http://").partition("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    given = {"Host": f"{host}:{port}", "Connection": "close", **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None)]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    return (
        int(status.split()[1]),
        {name.lower(): value for name, _, value in (it.partition(": ") for it in fields)},
        body,
    )
