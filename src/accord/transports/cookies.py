"""The cookies of one server, kept for as long as one talks to it: load balancers find a connection's home by them."""

from __future__ import annotations

from collections.abc import Iterable


class Cookies:
    """What a server set, and what it gets back.

    >>> cookies = Cookies()
    >>> cookies.keep(["home=seven; Path=/; HttpOnly", "gone=1", "gone=; Max-Age=0"])
    >>> cookies.header
    'home=seven'
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def keep(self, set_cookies: Iterable[str]) -> None:
        """Remember what these `Set-Cookie` headers say."""
        for line in set_cookies:
            pair, *attributes = (part.strip() for part in line.split(";"))
            name, equals, value = pair.partition("=")
            if not (name and equals):
                continue
            if any(_expires(attribute) for attribute in attributes):
                self._values.pop(name, None)
            else:
                self._values[name] = value

    @property
    def header(self) -> str:
        """The value of the `Cookie` header; empty when there is none."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items())


def _expires(attribute: str) -> bool:
    # A server takes a cookie back by Max-Age 0 (RFC 6265, 5.2.2), or by the beginning of time, as most write it.
    name, _, value = attribute.partition("=")
    match name.strip().lower():
        case "max-age":
            return value.strip().startswith(("0", "-"))
        case "expires":
            return "1970" in value
        case _:
            return False
