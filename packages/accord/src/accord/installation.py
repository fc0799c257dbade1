"""Installed packages beside the core: plug-ins of other distributions, extras, and the other packages of Accord.

A plug-in is an entry point:

| group | a name is | what the entry point names |
|---|---|---|
| `accord.agents` | a finder's name | a function (word, **options) to a `Target`, or None if it knows no such agent |
| `accord.transports` | a URL's scheme | a function (url, **options) to a `Target` |
| `accord.stores` | a URL's scheme | a function (url) to a `Store` |
| `accord.commands` | a command's name | a command of `accord` |
| `accord.extensions` | an extension's name | a class of `accord.Extension` |

Listing plug-ins reads the metadata of every installed distribution, which takes tens of milliseconds. So it is read
once, when a name comes up that Accord does not have itself: its own plug-ins are known without metadata, and no other
replaces them. A plug-in's code is imported when it is used. A broken plug-in breaks only its users, with an error that
names its distribution.

The core needs only msgspec. Features that need more name the missing extra and print the command that installs it. The
command depends on how Accord itself was installed: from an index, from a repository, or from a folder with its source,
where an install by name would fetch another package.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from accord.errors import AccordError, ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


AGENTS, TRANSPORTS, STORES, COMMANDS = "accord.agents", "accord.transports", "accord.stores", "accord.commands"
EXTENSIONS = "accord.extensions"

_CONVENTIONS = """
async-tasks background-subagents command-titles diff-patches display-terminals goals native-subagents rate-limits
rewind-files session-failures session-index steering
"""

OWN: Mapping[str, Mapping[str, str]] = {
    TRANSPORTS: dict.fromkeys(("http", "https", "ws", "wss"), "accord.http.client.url_target:url_target"),
    STORES: {
        "memory": "accord.store.store_url:memory_store",
        "sqlite": "accord.store.store_url:sqlite_store",
        **dict.fromkeys(("postgres", "postgresql"), "accord.store.postgres_store:PostgresStore"),
    },
    EXTENSIONS: {name: f"accord.extensions:{name.title().replace('-', '')}" for name in _CONVENTIONS.split()},
}
"""The plug-ins of Accord itself, by group and name."""


class PluginError(ConfigurationError):
    """A plug-in cannot be loaded."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of this group by name; nothing of them is imported.

    They are sorted by name. Of several with one name, Accord's own counts, then the first on `sys.path`. Later
    installations are not seen.
    """
    from importlib.metadata import EntryPoint, distributions  # costs more than the start of a small program

    found = {name: EntryPoint(name, value, group) for name, value in OWN.get(group, {}).items()}
    for distribution in distributions():
        try:
            points = [it for it in distribution.entry_points if it.group == group]
        except Exception as error:  # metadata that somebody wrote by hand must not break every program
            warnings.warn(f"cannot read the entry points of {distribution.name}: {error}", stacklevel=2)
            continue
        for point in points:
            found.setdefault(point.name, point)
    return MappingProxyType(dict(sorted(found.items())))


def load_plugin(plugin: EntryPoint) -> Any:
    """Import the object that this plug-in names; raises PluginError if that fails."""
    try:
        return plugin.load()
    except (Exception, SystemExit) as error:  # a script that is imported may exit
        raise PluginError(f"{describe(plugin)} cannot be loaded: {type(error).__name__}: {error}") from error


def plugin_for_scheme(group: str, url: str) -> Any:
    """Load the plug-in of this group for a URL's scheme; raises PluginError, with the known ones, if there is none."""
    scheme = scheme_of(url) or ""
    if (own := OWN[group].get(scheme)) is not None:
        module, _, name = own.partition(":")
        return getattr(import_module(module), name)
    known = plugins(group)
    if scheme not in known:
        raise PluginError(
            f"no plug-in for {scheme}:// is installed; known are {', '.join(f'{it}://' for it in known)}; "
            f"others come with distributions that register an entry point in the group {group}"
        )
    return load_plugin(known[scheme])


def scheme_of(written: str) -> str | None:
    """Return the scheme of a URL; None for anything else, such as a command or a path.

    >>> scheme_of("https://agents.example/acp"), scheme_of("gemini --acp"), scheme_of("C://agents/mine.exe")
    ('https', None, None)
    """
    found = re.match(r"([a-z][a-z0-9+.-]+)://", written, re.IGNORECASE)
    return found and found[1].lower()


def describe(plugin: EntryPoint) -> str:
    """Name a plug-in in errors, with the distribution that must be mended, updated or removed."""
    origin = "" if plugin.dist is None else f", of the distribution {plugin.dist.name} {plugin.dist.version}"
    return f"the plug-in {plugin.name!r} of {plugin.group} ({plugin.value}{origin})"


PACKAGES: Mapping[str, str] = {
    "hpack": "http2",
    "httptools": "http",
    "websockets": "http",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "opentelemetry": "otel",
    "anthropic": "agent",
    "openai": "agent",
    "keyring": "agent",
    "asyncpg": "postgres",
    "re2": "patterns",
    "markdown_it": "cli",
    "PIL": "cli",
    "jsonschema": "cli",
    "pygments": "cli",
    "rich": "cli",
    "textual": "cli",
    "uvloop": "uvloop",
    "acp": "official-sdk",
    "pydantic_ai": "pydantic-ai",
    "langchain_core": "langgraph",
    "langgraph": "langgraph",
    "agents": "openai-agents",
    "claude_agent_sdk": "claude-agent-sdk",
    "llama_index": "llama-index",
}
"""The packages that Accord and its tools import, and the extra that installs each."""

DISTRIBUTIONS: Mapping[str, str] = {
    "agent": "accord-tools",
    "cli": "accord-tools",
    "official-sdk": "accord-adapters",
    "pydantic-ai": "accord-adapters",
    "langgraph": "accord-adapters",
    "openai-agents": "accord-adapters",
    "claude-agent-sdk": "accord-adapters",
    "llama-index": "accord-adapters",
}
"""The distributions that have these extras; the others are of `accord`."""


@cache
def mcp_is_installed() -> bool:
    """Whether the official package of MCP is installed. Each connection asks, and each search covers the whole path."""
    if "mcp" in sys.modules:
        return cast("object", sys.modules["mcp"]) is not None  # None: its import is forbidden
    return any(it.find_spec("mcp", None) for it in sys.meta_path)


def install_command(extra: str) -> str:
    """Return the command that installs an extra, for the way in which Accord was installed.

    >>> install_command("mcp").startswith("pip install ")
    True
    """
    return _pip_install(DISTRIBUTIONS.get(extra, "accord"), f"[{extra}]")


def missing_package(package: str, what: str) -> AccordError:
    """Return the error for something that needs another distribution of Accord, such as `accord-check`.

    >>> print(str(missing_package("accord-check", "accord check")).partition(":")[0])
    accord check needs the package 'accord-check'
    """
    return AccordError(f"{what} needs the package {package!r}: {_pip_install(package)}")


def missing_extra(extra: str, what: str) -> AccordError:
    """Return the error for something that needs an extra.

    >>> print(str(missing_extra("http", "connecting to a URL")).partition(":")[0])
    connecting to a URL needs the extra 'http'
    """
    return AccordError(needs_extra(extra, what))


def needs_extra(extra: str, what: str) -> str:
    """The text of that error, for errors of other classes."""
    return f"{what} needs the extra {extra!r}: {install_command(extra)}"


def extra_of(error: ImportError) -> str | None:
    """Return the extra whose package an import did not find; None if it is no package of an extra."""
    return PACKAGES.get((error.name or "").partition(".")[0])


def own_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of Accord with these arguments, safe to start in any folder.

    `python -m` searches the current folder before the installed packages. An agent starts in the folder of a project,
    and a file `json.py` there would shadow the standard module; `-P` excludes that folder.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def _pip_install(package: str, extra: str = "") -> str:
    """Return the command that installs one of our distributions from where this one is from."""
    import shlex  # every start loads this module, and few ask it
    from pathlib import Path, PurePosixPath

    from accord.paths import path_of_uri

    origin = _origin()
    url = str(origin.get("url", ""))
    if url.startswith("file://"):
        source = Path(path_of_uri(url) or url)
        if source.suffix == ".whl" and package != "accord":
            return f"pip install --find-links {shlex.quote(str(source.parent))} {shlex.quote(f'{package}{extra}')}"
        if (beside := source.with_name(package)).is_dir():
            source = beside
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{source}{extra}')}"
    if "vcs_info" in origin:
        folder = origin.get("subdirectory")
        fragment = f"#subdirectory={PurePosixPath(folder).with_name(package)}" if folder else ""
        return "pip install " + shlex.quote(f"{package}{extra} @ {origin['vcs_info']['vcs']}+{url}{fragment}")
    return f"pip install {shlex.quote(f'{package}{extra}')}"


def _origin() -> dict[str, Any]:
    """Return where Accord was installed from (PEP 610); empty for an index, and the source's folder if it only runs
    there.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    try:
        origin_text = distribution("accord").read_text("direct_url.json")
    except PackageNotFoundError:
        source = Path(__file__).parents[2]
        is_checkout = (source / "pyproject.toml").is_file()
        return {"url": source.as_uri(), "dir_info": {"editable": True}} if is_checkout else {}
    origin: dict[str, Any] = json.loads(origin_text) if origin_text else {}
    return origin


# Names of a package that are loaded when they are first used (PEP 562).
#
# `accord` and `accord.http` have many names, and a program needs few of them: it loads only their modules. Type
# checkers see ordinary imports under `TYPE_CHECKING`; at run time a table maps names to modules. A test compares the
# two.


def on_first_use(
    package: str, modules: Mapping[str, str], here: str = ""
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package: the names that are `here`, and those of its modules.

    The table has the names of each module: `{"engine.peer": "Context Peer"}`. One that begins with a dot is a module
    beside the package. `name=other` is a name that is `other` in the module; `name:` is the module of that name itself.
    """
    homes = {
        word.rstrip(":").partition("=")[0]: (module, word) for module in modules for word in modules[module].split()
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, word = homes[name]
        is_module = word.endswith(":")
        try:
            place = f"{module}.{name}".strip(".") if is_module else module
            loaded = importlib.import_module(f".{place}", package)
        except ImportError as error:
            if (extra := extra_of(error)) is None:
                raise
            raise missing_extra(extra, f"{package}.{name}") from error
        value = loaded if is_module else getattr(loaded, word.partition("=")[2] or name)
        vars(sys.modules[package])[name] = value  # the next time it is an ordinary attribute
        return value

    names = [*here.split(), *homes]
    return names, load, lambda: sorted(names)
