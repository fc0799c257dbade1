"""Proxies between a client and an agent, and the conductor that joins them to a chain.

`accord.Proxy` is a component, and `accord.chain` joins several. The names here are for programs that are conductors, as
`accord conduct` is: they read components that a user wrote, and serve the chain at their standard streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.proxy.chain import (
        conduct_standard_streams as conduct_standard_streams,
        read_component as read_component,
    )
    from accord.proxy.link import ComponentFailure as ComponentFailure
    from accord.proxy.rust_trace import JsonsFile as JsonsFile

_HOMES = {
    "chain": "conduct_standard_streams read_component",
    "link": "ComponentFailure",
    "rust_trace": "JsonsFile",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
