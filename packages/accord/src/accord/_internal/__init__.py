"""Small things that several rooms use; here `Consent`, the truth of a user's answer.

`if await tool.ask():` must never do what the user refused. An object is true by default, so an answer whose class says
nothing about truth would allow everything. Each class whose objects carry an answer of the user is a `Consent`, and a
test walks the public classes to find one that is not.
"""

from __future__ import annotations


class Consent:
    """An answer that is true if the user agreed, and false otherwise."""

    __slots__ = ()

    def _agreed(self) -> bool:
        """Whether the user agreed; each class of answers says how it knows."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Whether the user agreed."""
        return self._agreed()
