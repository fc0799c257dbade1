"""API keys that `accord agent login` has stored: in the system's keyring, or in a file that only its user can read."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from accord.paths import config_folder, replace_file

SERVICE = "accord-agent"

_SECRETS = re.compile(r"(?:ANTHROPIC|OPENAI)_(?:\w+_)?(?:KEY|SECRET|TOKEN)")
"""The variables from which the packages of the providers take secrets."""


def without_secrets(key_variable: str | None) -> dict[str, str]:
    """Return variables for a command that the model runs: those of ours that contain a provider's secret, empty."""
    return dict.fromkeys((it for it in os.environ if it == key_variable or _SECRETS.fullmatch(it)), "")


def stored_key(api: str) -> str | None:
    """Return the key for this API, or None."""
    name = _name(api)
    with suppress(Exception):  # a keyring may be missing, locked or broken; then the file has it
        found: str | None = _keyring().get_password(SERVICE, name)
        if found:
            return found
    return _read_file().get(name)


def store_key(api: str, key: str) -> str:
    """Store a key; returns where it is, in words."""
    name = _name(api)
    try:
        _keyring().set_password(SERVICE, name, key)
    except Exception:  # as above
        _write_file({**_read_file(), name: key})
        return f"the file {_file()}, which only you can read"
    return "the system's keyring"


def forget_key(api: str) -> None:
    """Forget a key, wherever it is."""
    name = _name(api)
    with suppress(Exception):
        _keyring().delete_password(SERVICE, name)
    kept = _read_file()
    if kept.pop(name, None) is not None:
        _write_file(kept)


def _name(api: str) -> str:
    return "openai" if api == "responses" else api


def _keyring() -> Any:  # the package is loaded when it is used
    import keyring
    from keyring.backends import fail

    if isinstance(keyring.get_keyring(), fail.Keyring):
        raise LookupError("this system has no keyring")  # noqa: TRY004
    return keyring


def _file() -> Path:
    return config_folder() / "keys.json"


def _read_file() -> dict[str, str]:
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}


def _write_file(kept: dict[str, str]) -> None:
    _file().parent.mkdir(parents=True, exist_ok=True)
    replace_file(_file(), msgspec.json.encode(kept))
