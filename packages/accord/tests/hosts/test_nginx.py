"""Hosts behind nginx without sticky sessions, as the example and the documents configure it."""

import asyncio
import logging
import shutil
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import accord
from accord.http.server.access import Access
from accord.http.server.serve import serving
from tests.hosts.hosting import editor_on
from tests.http.talking import an_agent
from tests.waiting import DEADLINE, eventually

NGINX = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="this test has a proxy before the hosts: install nginx")

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples/hosting/nginx.conf"

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


def example_for(hosts):
    """The configuration of the example, for these hosts."""
    text = EXAMPLE.read_text()
    for number, host in enumerate(hosts, 1):
        text = _replaced(text, f"host{number}:8000", _address(host.url))
    return text


def documented(server):
    """The configuration of the page on deploying, for this server."""
    text = (ROOT / "docs" / "deploying.md").read_text().partition("```nginx\n")[2].partition("```")[0]
    text = _replaced(text, "127.0.0.1:8000", _address(server.url))
    text = _replaced(text, "server {\n", "server {\n    listen 8000;\n")
    return f"events {{ worker_connections 64; }}\nhttp {{\n{text}}}\n"


def _replaced(text, named, by):
    assert named in text
    return text.replace(named, by)


def _address(url):
    return url.split("/")[2]


async def started(text, folder):
    """nginx, and its port; another one if some process gets the port first."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        listens = _replaced(text, "listen 8000;", f"listen 127.0.0.1:{port};")
        within = "http {" + WITHIN.format(folder=folder)
        (folder / "nginx.conf").write_text(BEFORE.format(folder=folder) + _replaced(listens, "http {", within))
        process = await asyncio.create_subprocess_exec(
            *(NGINX, "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors"))
        )
        # nginx writes its number when it listens.
        await eventually(lambda process=process: process.returncode is not None or (folder / "pid").exists())
        if process.returncode is None:
            return process, port
        assert "Address already in use" in (folder / "errors").read_text()


@asynccontextmanager
async def nginx_before(text, folder):
    """nginx with this configuration; gives its URL."""
    process, port = await started(text, folder)
    try:
        yield f"http://127.0.0.1:{port}/acp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("way", ["http1", "websocket"])
async def test_hosts_answer_behind_the_nginx_of_the_example(tmp_path, way):
    async with AsyncExitStack() as stack:
        start = lambda: serving(an_agent(), hosts=accord.Hosts(tmp_path / "hosts.sqlite3"))  # noqa: E731
        hosts = [await stack.enter_async_context(start()) for _ in range(3)]
        for host in hosts:
            await eventually(lambda host=host: len(host.app.cluster.peers.ready()) == 2)
        url = await stack.enter_async_context(nginx_before(example_for(hosts), tmp_path))
        editor = await stack.enter_async_context(editor_on(url, way))
        session = await editor.open_session()
        for word in ("one", "two", "three"):
            await editor.prompt(session, word)
        assert editor.text(session) == "one two three "


@pytest.mark.parametrize("way", ["http1", "websocket"])
async def test_a_server_answers_behind_the_nginx_of_the_documents(tmp_path, way):
    async with serving(an_agent()) as server:
        text = documented(server)
        async with nginx_before(text, tmp_path) as url, editor_on(url, way) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "hello")
            assert editor.text(session) == "hello "


async def test_the_log_names_the_client_that_a_trusted_nginx_names(tmp_path, caplog):
    caplog.set_level(logging.INFO, "accord.http.access")
    access = Access(hosts=["localhost"], proxies=["127.0.0.1"])
    async with serving(an_agent(), access=access) as server:
        text = documented(server)
        async with nginx_before(text, tmp_path) as url, asyncio.timeout(DEADLINE):
            address = _address(url).split(":")
            reader, writer = await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
            writer.write(
                b"GET /acp?secret HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n"
            )
            await reader.read()
            writer.close()
    assert "Z 127.0.0.2 - GET /acp 406 " in caplog.text


async def test_without_the_host_of_the_client_the_answer_and_the_log_say_what_to_do(tmp_path, caplog):
    async with serving(an_agent()) as server:
        text = documented(server)
        text = _replaced(text, "proxy_set_header Host localhost;", "proxy_set_header Host agents.example;")
        async with nginx_before(text, tmp_path) as url:
            with pytest.raises(accord.ConnectionClosed, match=r"421.*agents\.example.*--allow-host"):
                async with editor_on(url):
                    pass
    assert "names agents.example" in caplog.text
    assert "127.0.0.1, ::1, localhost" in caplog.text


async def test_hosts_behind_nginx_need_no_sticky_sessions(hosts, tmp_path):
    async with nginx_before(example_for(hosts.all), tmp_path) as url:
        for way in ("http1", "websocket"):
            async with editor_on(url, way) as editor:
                session = await editor.open_session()
                for number in range(6):
                    await editor.prompt(session, f"<{number}>")
                await editor.prompt(session, "count 100")
                counted = "".join(f"{number} " for number in range(100))
                assert editor.text(session) == "<0><1><2><3><4><5>" + counted


async def test_a_host_behind_nginx_is_killed_and_a_turn_through_it_goes_on(hosts, tmp_path):
    async with nginx_before(example_for(hosts.all), tmp_path) as url, editor_on(url) as editor:
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
