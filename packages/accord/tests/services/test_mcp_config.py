"""The MCP servers that people have written down already, as an agent takes them."""

import json

import pytest

from accord import v1
from accord.client.mcp_config import load_mcp_servers, parse_mcp_servers
from accord.errors import ConfigurationError
from accord.schema.capabilities import Capabilities


def parse(servers, **environment):
    return parse_mcp_servers(json.dumps({"mcpServers": servers}), cwd="/work/project", environment=environment)


def test_a_program_with_its_arguments_and_environment():
    entry = {"command": "sh", "args": ["-c", "x", 3], "env": {"KEY": "${SECRET}", "N": 1}}
    env = [v1.EnvVariable("KEY", "s3cret"), v1.EnvVariable("N", "1")]
    [server] = parse({"one": entry}, SECRET="s3cret", PATH="/bin:/usr/bin")
    assert server == v1.McpServerStdio("one", server.command, ["-c", "x", "3"], env)
    assert server.command in ("/bin/sh", "/usr/bin/sh")


@pytest.mark.parametrize(
    ("command", "absolute"),
    [("./bin/server", "/work/project/bin/server"), ("../server", "/work/server"), ("/opt/x", "/opt/x")],
)
def test_a_command_is_made_absolute(command, absolute):
    assert parse({"one": {"command": command}})[0].command == absolute


def test_a_command_is_found_on_the_path_that_it_will_have(tmp_path):
    (tmp_path / "server").write_text("#!/bin/sh\n")
    (tmp_path / "server").chmod(0o755)
    for entry, environment in (
        ({"command": "server"}, {"PATH": str(tmp_path)}),
        ({"command": "server", "env": {"PATH": f"{tmp_path}:$PATH"}}, {}),
    ):
        assert parse({"one": entry}, **environment)[0].command == str(tmp_path / "server")


def test_home_and_workspace(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    [server] = parse({"one": {"command": "~/bin/x", "args": ["${workspaceFolder}/a", "~/b", "a~/b", "${userHome}"]}})
    assert server.command == "/home/me/bin/x"
    assert server.args == ["/work/project/a", "/home/me/b", "a~/b", "/home/me"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [("${A}", "1"), ("x${env:A}y${A}", "x1y1"), ("${NO:-d}", "d"), ("${A:-d}", "1"), ("${NO:-}", ""), ("$A", "$A")],
)
def test_variables(text, expanded):
    assert parse({"one": {"command": "/x", "args": [text]}}, A="1")[0].args == [expanded]


def test_servers_over_http():
    headers = [v1.HttpHeader("Authorization", "Bearer t")]
    assert parse(
        {
            "a": {"type": "http", "url": "https://a/${P}", "headers": {"Authorization": "Bearer ${T}"}},
            "b": {"type": "sse", "url": "https://b"},
            "c": {"url": "https://c"},
            "d": {"type": "streamable-http", "url": "https://d"},
        },
        T="t",
        P="p",
    ) == [
        v1.McpServerHttp("a", "https://a/p", headers),
        v1.McpServerSse("b", "https://b", []),
        v1.McpServerHttp("c", "https://c", []),
        v1.McpServerHttp("d", "https://d", []),
    ]


def test_what_is_switched_off_is_skipped_whatever_it_says():
    assert parse({"a": {"command": "missing ${NO}", "disabled": True}, "b": {"enabled": False}}) == []


@pytest.mark.parametrize("place", ["mcpServers", "servers", "context_servers"])
def test_other_editors_files_with_comments_and_trailing_commas(tmp_path, place):
    text = f"""\ufeff{{
      // mine
      "{place}": {{
        "one": {{"command": "/x", "args": ["// no comment", "/* nor this */", ",]"],}}, /* and
        another */
        "two": {{"command": {{"path": "/y", "args": ["z"], "env": null}}, "settings": {{}}}}, // the end
      }},
    }}"""
    (tmp_path / "mcp.json").write_text(text, encoding="utf-8")
    one, two = load_mcp_servers(tmp_path / "mcp.json")
    assert one.args == ["// no comment", "/* nor this */", ",]"]
    assert (two.command, two.args) == ("/y", ["z"])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x", "one: the entry must be an object"),
        ({}, "'command' or 'url' must be given"),
        ({"command": ""}, "'command' must be a non-empty string"),
        ({"command": "/x", "args": "-v"}, "'args' must be a list"),
        ({"command": "/x", "args": [None]}, "must hold only strings and numbers, got None"),
        ({"command": "/x", "env": ["A=1"]}, "'env' must be an object"),
        ({"command": "no-such-program"}, "command not found"),
        ({"command": "/x", "args": ["${NOT_SET}"]}, "variable NOT_SET is not set"),
        ({"type": "carrier-pigeon", "url": "x"}, "unknown type 'carrier-pigeon'"),
    ],
)
def test_what_makes_no_sense_says_where(entry, words):
    with pytest.raises(ConfigurationError, match=words):
        parse({"one": entry}, PATH="/bin")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"mcpServers": []}'])
def test_what_is_no_configuration_names_the_file(tmp_path, text):
    (tmp_path / "mcp.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"mcp\.json"):
        load_mcp_servers(tmp_path / "mcp.json")
    with pytest.raises(ConfigurationError, match="none"):
        load_mcp_servers(tmp_path / "none.json")


@pytest.mark.requirement("mcp.acp.only-when-advertised")
def test_an_agent_gets_what_it_can_use():
    servers = [
        v1.McpServerStdio("a", "/a", [], []),
        v1.McpServerHttp("b", "https://b", []),
        v1.McpServerSse("c", "https://c", []),
        v1.McpServerAcp("d", v1.McpServerAcpId("d")),
    ]

    def taken(**capabilities):
        offers = Capabilities(v1.AgentCapabilities(mcp_capabilities=v1.McpCapabilities(**capabilities)))
        return [server.name for server in servers if offers.allow(server)]

    assert taken() == ["a"]
    assert taken(http=True) == ["a", "b"]
    assert taken(sse=True) == ["a", "c"]
    assert taken(http=True, sse=True, acp=True) == ["a", "b", "c", "d"]
