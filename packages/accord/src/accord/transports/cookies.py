"""The cookies of one server, kept while a client is connected: load balancers route a connection by them."""

from __future__ import annotations

from collections.abc import Iterable


class Cookies:
    """Cookies that a server has set, and the header that returns them.

    >>> cookies = Cookies()
    >>> cookies.keep(["home=seven; Path=/; HttpOnly", "gone=1", "gone=; Max-Age=0"])
    >>> cookies.header
    'home=seven'
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def keep(self, set_cookies: Iterable[str]) -> None:
        """Store the cookies of these `Set-Cookie` headers, and remove those that expire."""
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
        """The value of the `Cookie` header; empty if there are no cookies."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items())

    def clear(self) -> None:
        """Remove all cookies."""
        self._values.clear()

    def __len__(self) -> int:
        return len(self._values)


def _expires(attribute: str) -> bool:
    # A server removes a cookie by Max-Age 0 (RFC 6265, 5.2.2) or, more often, by a date in 1970.
    name, _, value = attribute.partition("=")
    match name.strip().lower():
        case "max-age":
            return value.strip().startswith(("0", "-"))
        case "expires":
            return "1970" in value
        case _:
            return False
