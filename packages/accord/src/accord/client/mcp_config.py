"""Reading MCP servers from the configuration files of editors.

    {"mcpServers": {
      "files":  {"command": "npx", "args": ["-y", "some-server", "${workspaceFolder}"], "env": {"KEY": "${env:KEY}"}},
      "search": {"type": "http", "url": "https://mcp.example.com", "headers": {"Authorization": "Bearer ${TOKEN}"}},
      "off":    {"command": "x", "disabled": true}}}

`servers` and `context_servers`, the keys of other editors, are read as well; comments and trailing commas are allowed.
Variables: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${workspaceFolder}` (the session's folder), `${userHome}`; and
`~` at the beginning of a path. A variable that is not set is an error, not an empty string.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec

from accord.errors import ConfigurationError
from accord.schema import v1
from accord.transports.launch import program_file

SECTIONS = ("mcpServers", "servers", "context_servers")
"""The keys under which editors keep their servers."""

ConfiguredServer: TypeAlias = v1.McpServerStdio | v1.McpServerHttp | v1.McpServerSse
"""A server that a configuration file can describe."""


def load_mcp_servers(
    path: str | Path, *, cwd: str | Path | None = None, environment: Mapping[str, str] | None = None
) -> list[ConfiguredServer]:
    """Read the MCP servers of an editor's configuration file.

    `cwd` is the session's folder, by default the current one; `environment` has the values of `${NAME}`, by default our
    own environment. Raises ConfigurationError, whose one line names the file, the server and the problem.

        servers = accord.load_mcp_servers(".mcp.json", cwd=project)
        session = await remote.new_session(project, mcp_servers=servers)
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return parse_mcp_servers(text, cwd=cwd, environment=environment, source=str(path))


def parse_mcp_servers(
    text: str,
    *,
    cwd: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    source: str = "mcpServers",
) -> list[ConfiguredServer]:
    """Read the MCP servers of a configuration text; errors call it `source`."""
    try:
        document = msgspec.json.decode(_without_comments(text))
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{source}: {error}") from error
    reading = _Reading(Path(cwd or Path.cwd()), os.environ if environment is None else environment)
    servers: list[ConfiguredServer] = []
    for name, entry in _entries(document, source).items():
        try:
            servers += reading.server(name, entry)
        except ConfigurationError as error:
            raise ConfigurationError(f"{source}: {name}: {error}") from None
    return servers


def program(command: str, cwd: Path, path: str | None = None) -> str:
    """The absolute path of a program, which the protocol requires, found as a shell in `cwd` would find it."""
    if os.sep in command or (os.altsep and os.altsep in command):
        return os.path.normpath(cwd / Path(command).expanduser())
    found = program_file(command, path=path)
    if found is None:
        raise ConfigurationError(f"{command}: command not found; is it installed, and its directory on PATH?")
    return str(Path(found).absolute())


def handed_over(server: v1.McpServer, cwd: Path) -> v1.McpServer:
    """Return this server in the form that agents get: with the absolute path of its program."""
    if not isinstance(server, v1.McpServerStdio) or Path(server.command).is_absolute():
        return server
    path = next((variable.value for variable in server.env if variable.name == "PATH"), None)
    return msgspec.structs.replace(server, command=program(server.command, cwd, path))


def _entries(document: Any, source: str) -> dict[str, Any]:
    if isinstance(document, dict):
        sections = cast("dict[str, Any]", document)
        for section in SECTIONS:
            if isinstance(entries := sections.get(section), dict):
                return cast("dict[str, Any]", entries)
    raise ConfigurationError(f"{source}: must have an object {', '.join(SECTIONS[:-1])} or {SECTIONS[-1]}")


class _Reading:
    """Reads the entries of one file, and replaces the variables in them."""

    def __init__(self, cwd: Path, environment: Mapping[str, str]) -> None:
        self._cwd = cwd.absolute()
        self._environment = environment
        self._places = {
            "workspaceFolder": str(self._cwd),
            "workspaceFolderBasename": self._cwd.name,
            "userHome": str(Path.home()),
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def server(self, name: str, entry: Any) -> list[ConfiguredServer]:
        """The server of an entry; an empty list if it is switched off."""
        if not isinstance(entry, dict):
            raise ConfigurationError("the entry must be an object")
        fields = cast("dict[str, Any]", entry)
        if fields.get("disabled") is True or fields.get("enabled") is False:
            return []
        kind = fields.get("type") or fields.get("transport") or ("stdio" if "command" in fields else "http")
        match kind:
            case "stdio":
                return [self._stdio(name, fields)]
            case "http" | "streamable-http" | "streamableHttp" | "streamable_http":
                return [v1.McpServerHttp(name, self._url(fields), self._headers(fields))]
            case "sse":
                return [v1.McpServerSse(name, self._url(fields), self._headers(fields))]
            case _:
                raise ConfigurationError(f"unknown type {kind!r}; use stdio, http or sse")

    def _stdio(self, name: str, fields: dict[str, Any]) -> v1.McpServerStdio:
        command = fields.get("command")
        if isinstance(command, dict):  # {"path": ..., "args": ..., "env": ...}, as one editor writes it
            fields = cast("dict[str, Any]", command)
            command = fields.get("path")
        if not isinstance(command, str) or not command:
            raise ConfigurationError("'command' must be a non-empty string")
        arguments: Any = fields.get("args") or []
        if not isinstance(arguments, list):
            raise ConfigurationError("'args' must be a list")
        env = self._texts(fields.get("env"), "env")
        return v1.McpServerStdio(
            name,
            program(self._expanded(command), self._cwd, env.get("PATH") or self._environment.get("PATH")),
            [self._expanded(_text(word, "args")) for word in cast("list[Any]", arguments)],
            [v1.EnvVariable(*pair) for pair in env.items()],
        )

    def _url(self, fields: dict[str, Any]) -> str:
        url = fields.get("url") or fields.get("serverUrl") or fields.get("httpUrl")
        if not isinstance(url, str):
            raise ConfigurationError("'command' or 'url' must be given")
        return self._expanded(url)

    def _headers(self, fields: dict[str, Any]) -> list[v1.HttpHeader]:
        return [v1.HttpHeader(*pair) for pair in self._texts(fields.get("headers"), "headers").items()]

    def _texts(self, value: Any, what: str) -> dict[str, str]:
        if not value:
            return {}
        if not isinstance(value, dict):
            raise ConfigurationError(f"{what!r} must be an object")
        return {name: self._expanded(_text(text, what)) for name, text in cast("dict[str, Any]", value).items()}

    def _expanded(self, text: str) -> str:
        expanded = re.sub(r"\$\{([^{}]*)\}", lambda found: self._variable(found[1]), text)
        return str(Path(expanded).expanduser()) if expanded.startswith("~/") else expanded

    def _variable(self, written: str) -> str:
        if written in self._places:
            return self._places[written]
        name, has_default, default = written.removeprefix("env:").partition(":-")
        value = self._environment.get(name)
        if has_default and not value:
            return default
        if value is None:
            raise ConfigurationError(f"variable {name} is not set; set it, or write ${{{name}:-default}}")
        return value


def _text(value: Any, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigurationError(f"{what!r} must hold only strings and numbers, got {value!r}")
    return str(value)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def _without_comments(text: str) -> str:
    """Return plain JSON from JSON with comments and trailing commas; strings are not changed."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " "

    return _TOKEN.sub(kept, _TOKEN.sub(kept, text))  # twice: there may be a comment between a comma and its bracket
