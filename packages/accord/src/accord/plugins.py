"""Plug-ins: entry points by which other distributions add to Accord.

| group | a name is | what the entry point names |
|---|---|---|
| `accord.agents` | a finder's name | a function (word, **options) to a `Target`, or None if it knows no such agent |
| `accord.transports` | a URL's scheme | a function (url, **options) to a `Target` |
| `accord.stores` | a URL's scheme | a function (url) to a `Store` |
| `accord.commands` | a command's name | a command of `accord` |

Listing plug-ins reads the metadata of every installed distribution, which takes tens of milliseconds. So it is read
once, when a name turns up that Accord does not have itself: its own plug-ins are known without metadata, and no other
replaces them. A plug-in's code is imported when it is used.

A broken plug-in breaks only what uses it, with an error that names its distribution.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from accord.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


AGENTS, TRANSPORTS, STORES = "accord.agents", "accord.transports", "accord.stores"

OWN: Mapping[str, Mapping[str, str]] = {
    TRANSPORTS: dict.fromkeys(("http", "https", "ws", "wss"), "accord.http.client.url_target:url_target"),
    STORES: {
        "memory": "accord.store.store_url:memory_store",
        "sqlite": "accord.store.store_url:sqlite_store",
        **dict.fromkeys(("postgres", "postgresql"), "accord.store.postgres_store:PostgresStore"),
    },
}
"""The plug-ins of Accord itself, by group and name."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


class PluginError(ConfigurationError):
    """A plug-in cannot be loaded."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of this group by name; nothing of them is imported.

    They are in the order of their names. Of several with one name, Accord's own counts, then the first on `sys.path`.
    What is installed later is not seen.
    """
    from importlib.metadata import EntryPoint, distributions  # costs more than the start of a small program

    found = {name: EntryPoint(name, value, group) for name, value in OWN.get(group, {}).items()}
    for distribution in distributions():
        try:
            points = [it for it in distribution.entry_points if it.group == group]
        except Exception as error:  # metadata that somebody wrote by hand must not end everybody's programs
            warnings.warn(f"cannot read the entry points of {distribution.name}: {error}", stacklevel=2)
            continue
        for point in points:
            found.setdefault(point.name, point)
    return MappingProxyType(dict(sorted(found.items())))


def load_plugin(plugin: EntryPoint) -> Any:
    """Import what this plug-in names; raises PluginError if that fails."""
    try:
        return plugin.load()
    except (Exception, SystemExit) as error:  # a script that is imported may exit
        raise PluginError(f"{describe(plugin)} cannot be loaded: {type(error).__name__}: {error}") from error


def plugin_for_scheme(group: str, url: str) -> Any:
    """Load the plug-in of this group for a URL's scheme; raises PluginError, with what is known, if there is none."""
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
    """Return the scheme of a URL; None for what is no URL, such as a command or a path.

    >>> scheme_of("https://agents.example/acp"), scheme_of("gemini --acp"), scheme_of("C://agents/mine.exe")
    ('https', None, None)
    """
    found = _SCHEME.match(written)
    return found and found[1].lower()


def describe(plugin: EntryPoint) -> str:
    """Name a plug-in in errors, with the distribution that must be mended, updated or removed."""
    origin = "" if plugin.dist is None else f", of the distribution {plugin.dist.name} {plugin.dist.version}"
    return f"the plug-in {plugin.name!r} of {plugin.group} ({plugin.value}{origin})"
