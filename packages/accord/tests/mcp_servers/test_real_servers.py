"""MCP servers that other people made, from npm and from PyPI, kept in the user's cache."""

import json
import shutil

import pytest
from benchmarks.build import Unavailable
from benchmarks.peers import Peer, fill
from interop.peers import had

from accord import v1

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def from_npm(name, version):
    install = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "{build}")
    return Peer(
        name=f"mcp-{name}",
        package=f"@modelcontextprotocol/server-{name}",
        version=version,
        language="TypeScript",
        agent=(f"{{build}}/node_modules/.bin/mcp-server-{name}",),
        client=(),
        steps=((*install, f"@modelcontextprotocol/server-{name}@{version}"),),
        tools=("node", "npm"),
        install="Node 22 or later",
    )


def from_pypi(package, version):
    return Peer(
        name=package,
        package=package,
        version=version,
        language="Python",
        agent=("{venv}", "-m", package.replace("-", "_")),
        client=(),
        steps=(
            ("{python}", "-m", "venv", "{build}/venv"),
            ("{venv}", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{package}=={version}"),
        ),
    )


EVERYTHING = from_npm("everything", "2026.8.31")
FILESYSTEM = from_npm("filesystem", "2026.8.31")
TIME = from_pypi("mcp-server-time", "2026.10.19")


def started(peer, *arguments):
    try:
        built = had(peer)
    except Unavailable as error:
        pytest.skip(str(error))
    command, *rest = [shutil.which(part) or part for part in fill(peer.agent, built.folder)]
    return v1.McpServerStdio(peer.name, command, [*rest, *arguments], [])


async def test_a_server_from_pypi_tells_the_time(session_with):
    async with session_with(started(TIME, "--local-timezone", "UTC")) as session:
        result = await session.run("convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
        assert "21:00" in result.text
        assert (
            await session.run("convert_time", source_timezone="No/Where", time="1:00", target_timezone="UTC")
        ).failed


async def test_a_server_from_npm_works_in_the_sessions_folder(session_with, tmp_path):
    async with session_with(started(FILESYSTEM, str(tmp_path))) as session:
        await session.run("write_file", path=str(tmp_path / "note.txt"), content="buy paint")
        assert (tmp_path / "note.txt").read_text() == "buy paint"
        assert "buy paint" in (await session.run("read_text_file", path=str(tmp_path / "note.txt"))).text
        assert (await session.run("read_text_file", path="/etc/hostname")).failed


async def test_a_server_from_npm_offers_everything(session_with):
    answer = v1.ElicitationAcceptAction({"name": "Ada", "check": True})
    async with session_with(started(EVERYTHING), answer=answer) as session:
        assert "7" in (await session.run("get-sum", a=3, b=4)).text
        [*_, image] = [b for b in (await session.run("get-tiny-image")).content if isinstance(b, v1.ImageContent)]
        assert image.mime_type == "image/png"
        links = (await session.run("get-resource-links", count=2)).content
        assert [type(block) for block in links].count(v1.ResourceLink) == 2
        assert (await session.servers.read((await session.servers.resources())[0]))[0].resource.uri
        assert [prompt.name for prompt in await session.servers.prompts()]
        structured = await session.run("get-structured-content", location="New York")
        assert json.loads(structured.text) == structured.structured


async def test_a_server_from_npm_asks_the_user(session_with):
    answer = v1.ElicitationAcceptAction({"name": "Ada"})
    async with session_with(started(EVERYTHING), answer=answer) as session:
        await session.run("trigger-elicitation-request")
        [form] = session.questions
        assert isinstance(form, v1.ElicitationFormMode)
        assert form.requested_schema.properties
