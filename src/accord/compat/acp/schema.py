"""The models of the protocol, by their names in the official Python SDK; each is made when it is first asked for."""

from __future__ import annotations

from typing import Any

from accord.compat.models import BaseModel
from accord.compat.models.building import model_named
from accord.compat.models.listing import MODELS

__all__ = ["BaseModel", *MODELS]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    made = None if name.startswith("_") else model_named(name)
    if made is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted(__all__)
