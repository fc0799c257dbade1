"""Plug-ins: entry points by which other distributions add to Accord.

| group | a name is | what the entry point names |
|---|---|---|
| `accord.agents` | a finder's name | a function (word, **options) to a `Target`, or None if it knows no such agent |
| `accord.transports` | a URL's scheme | a function (url, **options) to a `Target` |
| `accord.stores` | a URL's scheme | a function (url) to a `Store` |
| `accord.commands` | a command's name | a command of `accord` |

To list the plug-ins reads the metadata of every installed distribution, which takes milliseconds. So it is read once,
when a name is met that Accord does not know itself. A plug-in's code is imported when it is used.

A broken plug-in breaks only what uses it, with an error that names its distribution.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from accord.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class PluginError(ConfigurationError):
    """A plug-in cannot be loaded."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the installed plug-ins of this group by name; nothing of them is imported.

    Of several with one name, the first on `sys.path` counts, as for modules. What is installed later is not seen.
    """
    from importlib.metadata import distributions  # costs more than the start of a small program

    found: dict[str, EntryPoint] = {}
    for distribution in distributions():
        try:
            points = [it for it in distribution.entry_points if it.group == group]
        except Exception as error:  # metadata that somebody wrote by hand must not end everybody's programs
            warnings.warn(f"cannot read the entry points of {distribution.name}: {error}", stacklevel=2)
            continue
        for point in points:
            found.setdefault(point.name, point)
    return MappingProxyType(found)


def load_plugin(plugin: EntryPoint) -> Any:
    """Import what this plug-in names; raises PluginError if that fails."""
    try:
        return plugin.load()
    except Exception as error:
        raise PluginError(f"{describe(plugin)} cannot be loaded: {type(error).__name__}: {error}") from error


def describe(plugin: EntryPoint) -> str:
    """Name a plug-in in errors, with the distribution that must be mended, updated or removed."""
    origin = "" if plugin.dist is None else f", of the distribution {plugin.dist.name} {plugin.dist.version}"
    return f"the plug-in {plugin.name!r} of {plugin.group} ({plugin.value}{origin})"
