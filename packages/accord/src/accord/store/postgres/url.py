"""The URL of a database. PURE: asyncpg is not loaded for it."""

from __future__ import annotations

from accord.masking import mask_urls


def is_postgres(url: object) -> bool:
    """Whether this is the URL of a PostgreSQL database.

    >>> is_postgres("postgresql://db1,db2/accord"), is_postgres("sessions.sqlite3")
    (True, False)
    """
    return isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))


def check_url(url: object) -> None:
    """Refuse what is not the URL of a PostgreSQL database."""
    if not isinstance(url, str):
        raise TypeError(f"PostgresStore(url) takes a URL such as 'postgresql://host/name', got {type(url).__name__}")
    if not is_postgres(url):
        raise ValueError(f"PostgresStore(url) takes a URL such as 'postgresql://host/name', got {mask_urls(url)!r}")
