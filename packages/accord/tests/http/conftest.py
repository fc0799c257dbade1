"""Fixtures: real servers on the loopback, and the three ways to connect to them."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import subprocess

import pytest

from accord.http import serving
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.http.talking import WAYS, an_agent


@pytest.fixture
async def server():
    async with serving(an_agent()) as running:
        yield running


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture(autouse=True)
async def nothing_is_left(caplog):
    """No task outlives its test, and asyncio logs nothing."""
    gc.collect()
    gc.freeze()  # what is alive now need not be looked at again by each later test
    caplog.set_level(logging.INFO, "accord")
    tasks = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()} - tasks
    if left:
        await asyncio.wait(left, timeout=5)
    assert {task for task in left if not task.done()} == set()
    assert [record for record in caplog.get_records("call") if record.name == "asyncio"] == []


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("this test makes a certificate: install openssl")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(
        ["openssl", "req", "-x509", *kind, *names, "-out", certificate, "-keyout", key],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return certificate, key
