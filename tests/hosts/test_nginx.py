"""Three hosts behind nginx without sticky sessions, as the example configures it."""

import asyncio
import shutil
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.hosts.hosting import editor_on
from tests.http.talking import DEADLINE
from tests.waiting import eventually

NGINX = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="this test has a proxy before the hosts: install nginx")

EXAMPLE = Path(__file__).parents[2] / "examples/hosting/nginx.conf"

BEFORE = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
"""

WITHIN = """
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
"""


def configured(hosts, folder, port):
    """The configuration of the example, for these hosts."""
    text = EXAMPLE.read_text().replace("listen 8000;", f"listen 127.0.0.1:{port};")
    for number, host in enumerate(hosts, 1):
        assert f"server host{number}:8000" in text
        text = text.replace(f"host{number}:8000", host.url.split("/")[2])
    return BEFORE.format(folder=folder) + text.replace("http {", "http {" + WITHIN.format(folder=folder))


async def started(hosts, folder):
    """nginx, and its port; another one if some process gets the port first."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        (folder / "nginx.conf").write_text(configured(hosts, folder, port))
        process = await asyncio.create_subprocess_exec(
            *(NGINX, "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors"))
        )
        # nginx writes its number when it listens.
        await eventually(lambda process=process: process.returncode is not None or (folder / "pid").exists())
        if process.returncode is None:
            return process, port
        assert "Address already in use" in (folder / "errors").read_text()


@asynccontextmanager
async def nginx_before(hosts, folder):
    """nginx with the configuration of the example; gives its URL."""
    process, port = await started(hosts, folder)
    try:
        yield f"http://127.0.0.1:{port}/acp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_hosts_behind_nginx_need_no_sticky_sessions(hosts, tmp_path):
    async with nginx_before(hosts.all, tmp_path) as url:
        for way in ("http1", "websocket"):
            async with editor_on(url, way) as editor:
                session = await editor.open_session()
                for number in range(6):
                    await editor.prompt(session, f"<{number}>")
                await editor.prompt(session, "count 100")
                counted = "".join(f"{number} " for number in range(100))
                assert editor.text(session) == "<0><1><2><3><4><5>" + counted


async def test_a_host_behind_nginx_is_killed_and_a_turn_through_it_goes_on(hosts, tmp_path):
    async with nginx_before(hosts.all, tmp_path) as url, editor_on(url) as editor:
        home = await hosts.host_of(editor)
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "slowly 150"))
        async with asyncio.timeout(DEADLINE):
            await editor.hear_more()
        for host in hosts.all:
            if host is not home:
                await host.end()
                break
        assert (await turn).stop_reason == "end_turn"
        assert editor.text(session) == "".join(f"{number} " for number in range(150))
