"""Environments of Windows: names of variables have no case, and programs cannot start without some of them. PURE."""

from __future__ import annotations

from collections.abc import Mapping

ALWAYS = ("SYSTEMROOT",)
"""Variables without which Windows programs fail to load libraries or to open sockets."""


def merged(inherited: Mapping[str, str], changes: Mapping[str, str | None], own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a new process, with names in upper case, so that `Path` replaces `PATH`.

    `own` is our environment, of which a process gets `ALWAYS`.
    """
    present = {name.upper(): value for name, value in own.items()}
    wanted: dict[str, str | None] = {name: present[name] for name in ALWAYS if name in present}
    for variables in (inherited, changes):
        wanted |= {name.upper(): value for name, value in variables.items()}
    return {name: value for name, value in wanted.items() if value is not None}
