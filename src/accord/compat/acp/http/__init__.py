"""Not offered: `accord.connect(url)` reaches agents over HTTP, and `accord.http` serves them."""

from typing import NoReturn


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        f"accord.compat.acp.http does not offer {name}: a client uses accord.connect(url, client), and an agent is "
        "served by accord.http"
    )
