"""The store for a text of the user: `Agent(store=...)`, `accord serve --store`, the variable `ACCORD_STORE`.

| written | store |
|---|---|
| `:memory:`, `memory://` | in memory |
| `sessions.sqlite3`, `sqlite:///home/me/sessions.sqlite3` | a SQLite file; a URL has an absolute path |
| `postgresql://db/accord`, `postgres://db/accord` | a PostgreSQL database |
| `NAME://...` | what the plug-in NAME of the group `accord.stores` makes of it |
"""

from __future__ import annotations

from pathlib import Path

from accord.installation import STORES, PluginError, plugin_for_scheme, scheme_of
from accord.mistakes import check_path
from accord.paths import path_of_uri
from accord.store import IN_MEMORY, MemoryStore, Store


def store_at(where: str | Path, argument: str = "store") -> Store:
    """Return the store with this path or URL; raises PluginError for a URL with an unknown scheme.

    `argument` is the name in errors of a value that is neither text nor a path.
    """
    check_path(argument, where)
    if where == IN_MEMORY:
        return MemoryStore()
    if isinstance(where, str) and scheme_of(where):
        store = plugin_for_scheme(STORES, where)(where)
        if not isinstance(store, Store):
            raise PluginError(f"the plug-in for {scheme_of(where)}:// must return a Store, got {type(store).__name__}")
        return store
    from accord.store.sqlite_store import SqliteStore  # most agents keep their sessions in memory

    return SqliteStore(where)


def memory_store(url: str) -> Store:
    """The plug-in for `memory://`."""
    if url.partition("://")[2]:
        raise ValueError(f"memory:// has nothing behind it, got {url!r}; to keep sessions in a file, write its path")
    return MemoryStore()


def sqlite_store(url: str) -> Store:
    """The plug-in for `sqlite:///PATH`."""
    from accord.store.sqlite_store import SqliteStore

    path = path_of_uri(f"file{url[len('sqlite') :]}")
    if path is None or not path.name:
        raise ValueError(f"sqlite:// takes an absolute path, sqlite:///home/me/sessions.sqlite3, got {url!r}")
    return SqliteStore(path)
