"""`Built`: what an installer made. PURE."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Built:
    """The program that an installer made, and the digest of its content."""

    argv: list[str]
    """The program, and the arguments that it needs before those of the entry."""
    integrity: str
    """The digest of the content, such as `sha512-...` of npm; empty if there is none."""
    version: str
    """The version that was installed."""
