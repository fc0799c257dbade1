"""`CoderSettings`: the coding agent's settings from its command line, the project's file and the user's.

    provider = "local"                    # the user's file, agent.toml in the folder of settings
    model = "qwen3"
    mode = "edit"

    [providers.local]
    api = "openai"
    base_url = "http://localhost:11434/v1"
    key_variable = "LOCAL_KEY"            # the environment variable with the key

    [models.qwen3]
    context = 32000
    price = [0.5, 1.5]                    # dollars for a million tokens, read and written

    [mcp.notes]                           # as in the files of editors
    command = "notes-mcp"

    [[rules]]                             # as in the files of --policy; they answer before the mode does
    answer = "allow"
    commands = ["make test"]

An option of the command line takes precedence over a file, and the project's file over the user's. A project's file,
`.accord/agent.toml`, is read if the user trusts its repository. It may make the agent stricter, never less strict: it
names no provider and no mode, and its rules ask or reject.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from accord import ConfigurationError, PermissionPolicy, v1
from accord.agent.model_messages import Api
from accord.mistakes import nearest
from accord.paths import config_folder
from accord.project.git import find_repository
from accord.project.project import Project
from accord_tools.coder.open_model import ModelFacts, ModelSettings
from accord_tools.configuration.trust import is_folder_trusted

NAME = "agent.toml"
LARGEST = 1_000_000
"""Bytes: a larger file was not written by a person."""
OF_PROJECT = ("model", "effort", "context", "price", "models", "mcp", "rules")
"""The settings that a project's file may have."""


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The location of models."""

    api: Api = "openai"
    base_url: str | None = None
    key_variable: str | None = None
    model: str | None = None


class McpEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An MCP server: a program, or an address."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}

    def as_server(self, name: str) -> v1.McpServer:
        """The server as the protocol has it."""
        if self.url is not None:
            return v1.McpServerHttp(name, self.url, [v1.HttpHeader(*it) for it in self.headers.items()])
        return v1.McpServerStdio(name, self.command or "", self.args, [v1.EnvVariable(*it) for it in self.env.items()])


class CoderFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of one file, or of the command line."""

    provider: str | None = None
    api: Api | None = None
    base_url: str | None = None
    key_variable: str | None = None
    model: str | None = None
    effort: Literal["low", "medium", "high"] | None = None
    mode: Literal["ask", "edit", "auto", "plan"] | None = None
    context: int | None = None
    price: tuple[float, float] | None = None
    store: str | None = None
    unstable: bool | None = None
    providers: dict[str, Provider] = {}
    models: dict[str, ModelFacts] = {}
    mcp: dict[str, McpEntry] = {}
    rules: list[dict[str, Any]] = []


class Layer(NamedTuple):
    """A file, or the command line, by its name for people."""

    source: str
    said: CoderFile


def parse(text: str, source: str) -> CoderFile:
    """Parse a file; raises ConfigurationError, which names the place and the word that may be meant."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{source}: {error}") from None
    _check_keys(document, CoderFile, source)
    for table, kind in (("providers", Provider), ("models", ModelFacts), ("mcp", McpEntry)):
        entries: Any = document.get(table, {})
        for name, entry in cast("dict[str, Any]", entries if isinstance(entries, dict) else {}).items():
            _check_keys(entry, kind, f"{source}: [{table}.{name}]")
    try:
        said = msgspec.convert(document, CoderFile)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{source}: {error}") from None
    for name, server in said.mcp.items():
        if (server.command is None) == (server.url is None):
            raise ConfigurationError(f"{source}: [mcp.{name}] must have either 'command' or 'url'")
    _policy(said, source)
    return said


def _check_keys(table: Any, kind: type[Struct], where: str) -> None:
    known = kind.__struct_fields__
    for key in cast("dict[str, Any]", table if isinstance(table, dict) else {}):
        if key not in known:
            what = nearest(key, known) or f"; use {', '.join(known)}"
            raise ConfigurationError(f"{where}: unknown key {key!r}{what}")


def _policy(said: CoderFile, source: str) -> PermissionPolicy:
    # The rules have one reader: `PermissionPolicy`, which reads TOML, of which JSON's strings and lists are a part.
    tables = [["[[rules]]", *(f"{key} = {json.dumps(it)}" for key, it in rule.items())] for rule in said.rules]
    return PermissionPolicy.parse("\n".join(line for table in tables for line in table), source=source)


def user_layer() -> Layer | None:
    """Return the user's file; None if there is none."""
    path = config_folder() / NAME
    try:
        return Layer(str(path), parse(path.read_text(encoding="utf-8-sig"), str(path)))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from None


def project_layer(folder: Path) -> Layer | None:
    """Return the file of the project that a folder belongs to; None if there is none, or the user does not trust it."""
    repository = find_repository(folder)
    if repository is None or not is_folder_trusted(repository):
        return None
    path = repository.root / ".accord" / NAME
    try:
        said = parse(Project([repository.root]).read(path, LARGEST).decode("utf-8-sig"), str(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if forbidden := [key for key in msgspec.to_builtins(said) if key not in OF_PROJECT]:
        raise ConfigurationError(f"{path}: {forbidden[0]!r} belongs in your own file, {config_folder() / NAME}")
    if any(rule.get("answer") == "allow" for rule in said.rules):
        raise ConfigurationError(f"{path}: a rule of a project must have the answer 'ask' or 'reject'")
    return Layer(str(path), said)


class CoderSettings:
    """All layers, the one with precedence first."""

    def __init__(self, layers: Sequence[Layer | None]) -> None:
        self.layers = [layer for layer in layers if layer is not None]

    def with_project(self, folder: Path) -> CoderSettings:
        """Return the same for a session in this folder: its project's file comes after the command line."""
        return CoderSettings([*self.layers[:1], project_layer(folder), *self.layers[1:]])

    def value(self, key: str) -> tuple[Any, str]:
        """Return the value of a key, and its source; None and an empty text if nothing sets it."""
        for source, said in self.layers:
            if (value := getattr(said, key)) is not None:
                return value, source
        return None, ""

    def _tables(self, key: str) -> dict[str, Any]:
        return {name: it for layer in reversed(self.layers) for name, it in getattr(layer.said, key).items()}

    @property
    def model_settings(self) -> ModelSettings:
        """Return the settings for models; raises ConfigurationError for an unknown provider."""
        name, source = self.value("provider")
        known: Mapping[str, Provider] = self._tables("providers")
        if name is not None and name not in known:
            more = nearest(name, known) or f"; there are: {', '.join(known) or 'none'}"
            raise ConfigurationError(f"{source}: there is no [providers.{name}]{more}")
        given = {key: self.value(key)[0] for key in (*Provider.__struct_fields__, "effort", "context", "price")}
        if name is not None:
            given |= {key: it for key, it in asdict(known[name]).items() if given[key] is None}
        rules = [rule for layer in self.layers for rule in _policy(layer.said, layer.source).rules]
        policy = PermissionPolicy(rules) if rules else None
        return ModelSettings(**given, models=self._tables("models"), policy=policy)

    @property
    def mcp_servers(self) -> list[v1.McpServer]:
        """The MCP servers of all layers."""
        return [entry.as_server(name) for name, entry in self._tables("mcp").items()]

    def shown(self) -> Iterator[tuple[str, str, str]]:
        """Return each key that something sets, its value as JSON, and its source."""
        for key in CoderFile.__struct_fields__:
            for source, said in self.layers:
                value: Any = msgspec.to_builtins(getattr(said, key))
                if isinstance(value, dict):
                    members = cast("dict[str, Any]", value).items()
                    yield from ((f"{key}.{name}", json.dumps(it), source) for name, it in members)
                elif isinstance(value, list):
                    yield from ((key, json.dumps(it), source) for it in cast("list[Any]", value))
                elif value is not None:
                    yield key, json.dumps(value), source
                    break
