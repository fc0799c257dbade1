"""The official Python SDK's names, on our engine: `import accord.compat.acp as acp`.

Names and behaviour are those of the package `agent-client-protocol`; the code and the models are ours. What differs
stands in the table of `docs/from-the-official-sdk.md`.
"""

from __future__ import annotations

import warnings
from typing import Any

from accord.compat.acp.listing import NAMES
from accord.loading import on_first_use

__all__ = list(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]

_load = on_first_use(__name__, NAMES)
_DISCOURAGED = {
    "AgentSideConnection": ("core", "run_agent"),
    "ClientSideConnection": ("core", "connect_to_agent"),
}


def __getattr__(name: str) -> Any:
    if name in _DISCOURAGED:
        module, better = _DISCOURAGED[name]
        warnings.warn(f"{name} is deprecated here: use {better}", DeprecationWarning, stacklevel=2)
        return on_first_use(__name__, {name: module})(name)
    return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
