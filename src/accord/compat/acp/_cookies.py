"""`MemoryAcpCookieStore`: the cookies of a server, which a program keeps from one connection to the next."""

from __future__ import annotations

from collections.abc import Iterable

from accord.transports.cookies import Cookies

__all__ = ["MemoryAcpCookieStore"]


class MemoryAcpCookieStore:
    """Cookies by their names. A cookie that the server lets expire is removed."""

    def __init__(self) -> None:
        self.cookies = Cookies()
        """The cookies as our transports keep them."""

    def store_set_cookie(self, header_value: str) -> None:
        """Store the cookie of one `Set-Cookie` header."""
        self.cookies.keep([header_value])

    def store_set_cookies(self, header_values: Iterable[str]) -> None:
        """Store the cookies of these `Set-Cookie` headers."""
        self.cookies.keep(header_values)

    def cookie_header(self) -> str | None:
        """The value of the `Cookie` header; None without cookies."""
        return self.cookies.header or None

    def clear(self) -> None:
        """Forget all cookies."""
        self.cookies.clear()

    def __len__(self) -> int:
        return len(self.cookies)
