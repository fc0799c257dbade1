"""Masks secrets in recorded messages, and in URLs that people read: in errors, logs and traces. PURE.

Readers of a record must not see the values of `env` and `headers`, members with the name of a secret (`apiKey`), the
answer to a login or a form, and the secret parts of URLs. These values become `***`, wherever in the message they are;
names and everything else stay, of a URL its host and path. Most frames have none of them: a search for the words finds
that out, and such a frame is recorded byte for byte.

Secrets that cannot be recognised stay: in a prompt, in an agent's answer, in a file, or in the arguments of a command.
"""

from __future__ import annotations

import re
from typing import Any, cast

MASK = "***"
"""The replacement for a secret."""

_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
# A query without names (`?TOKEN`) is masked whole; with names, each value is.
# Each match takes the whole URL, also one without a query, so that no character is scanned twice.
_QUERY = re.compile(r"(://[^?#\s]*)(?:\?([^#\s'\"<>]*))?")
_VALUE = re.compile(r"=[^&;]*")


def mask_urls(text: str) -> str:
    """Return this text, with user names, passwords and query values in its URLs replaced by `***`.

    >>> mask_urls("no answer from https://ada:secret@example.com/acp?token=abc&page=2")
    'no answer from https://***@example.com/acp?token=***&page=***'
    >>> mask_urls("why? because")
    'why? because'
    """
    return _QUERY.sub(_masked_query, _USER_INFO.sub(f"{MASK}@", text))


def _masked_query(found: re.Match[str]) -> str:
    before, query = found.groups()
    if query is None:
        return before
    return f"{before}?{_VALUE.sub(f'={MASK}', query) if '=' in query else MASK}"


HIDDEN = "a frame of {length:,} bytes, not recorded: it is not plain JSON, and may hold secrets"

_PAIRS = frozenset({"env", "headers"})
"""Members that hold names and values, as a list of both or as an object."""

_NAMES = frozenset(
    {
        "accesstoken",
        "apikey",
        "authorization",
        "bearertoken",
        "clientsecret",
        "cookie",
        "credential",
        "credentials",
        "idtoken",
        "passphrase",
        "password",
        "privatekey",
        "refreshtoken",
        "secret",
        "token",
    }
)
"""Members whose value is a secret, in lower case and without `-` and `_`."""

_WORDS = re.compile(
    rb"(?i)\"(?:env|headers|authenticate|accept|access[-_]?token|api[-_]?key|authorization|bearer[-_]?token"
    rb"|client[-_]?secret|cookie|credentials?|id[-_]?token|pass(?:phrase|word)|private[-_]?key|refresh[-_]?token"
    rb"|secret|token)\""
    rb"|\\u00[2-7]"  # an escaped letter, which may hide one of the words
)


def masked(frame: bytes) -> bytes | None:
    """Return this frame with its secrets masked; None if it has none and can be recorded unchanged.

    >>> masked(b'{"params":{"env":[{"name":"KEY","value":"s3cret"}]}}')
    b'{"params":{"env":[{"name":"KEY","value":"***"}]}}'
    """
    if not _may_hold_secrets(frame):
        return None
    import msgspec  # the help of a command masks URLs, and needs no more

    try:
        message = msgspec.json.decode(frame)
        return msgspec.json.encode(message) if _mask(message) else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _masked_oddity(frame)


def _may_hold_secrets(frame: bytes) -> bool:
    may_hold_url = (b"://" in frame or b":\\/" in frame) and (b"@" in frame or b"?" in frame)
    return may_hold_url or _WORDS.search(frame) is not None


def _masked_oddity(frame: bytes) -> bytes:
    """Mask a frame that is not valid JSON, such as with half a surrogate pair, by a lenient decoder; else as text."""
    import json  # few frames need its leniency, and each start would load it

    text = frame.decode("utf-8", "replace")
    try:
        message = json.loads(text)
        _mask(message)
        return json.dumps(message).encode()
    except (ValueError, RecursionError):
        hidden = _WORDS.search(frame) is not None
        return (HIDDEN.format(length=len(frame)) if hidden else mask_urls(text)).encode()


def _mask(message: Any) -> bool:
    """Mask the secrets of a value in place; returns whether there were any."""
    found = _mask_answers(message)
    waiting: list[Any] = [message]
    while waiting:  # no recursion: a message may be nested deeper than Python's stack
        value = waiting.pop()
        for key, member in _members(value):
            if isinstance(key, str) and _is_secret(key, member):
                found |= _mask_values(value, key)
            elif isinstance(member, str):
                if "://" in member and (shown := mask_urls(member)) != member:
                    value[key] = shown
                    found = True
            elif isinstance(member, dict | list):
                waiting.append(member)
    return found


def _members(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def _is_secret(name: str, value: Any) -> bool:
    if name in _PAIRS:
        return isinstance(value, dict | list)
    return isinstance(value, str) and name.lower().replace("_", "").replace("-", "") in _NAMES


def _mask_answers(message: Any) -> bool:
    """Mask the user's input: to `authenticate`, except the method's id, and to a form."""
    if not isinstance(message, dict):
        return False
    call = cast("dict[str, Any]", message)
    params, result = call.get("params"), call.get("result")
    found = False
    if call.get("method") == "authenticate" and isinstance(params, dict):
        for name, _ in _members(params):
            if name != "methodId":
                params[name] = MASK
                found = True
    if isinstance(result, dict) and cast("dict[str, Any]", result).get("action") == "accept":
        found |= _mask_values(result, "content")
    return found


def _mask_values(holder: Any, key: str) -> bool:
    """Mask a member: a string, or the values of an object or of a list of names and values."""
    value = holder.get(key)
    if isinstance(value, str):
        holder[key] = MASK
    elif isinstance(value, dict):
        holder[key] = {name: MASK for name, _ in _members(value)}
    elif isinstance(value, list):
        holder[key] = [_masked_pair(pair) for _, pair in _members(value)]
    return bool(holder.get(key) != value)


def _masked_pair(pair: Any) -> Any:
    if not isinstance(pair, dict):
        return MASK
    return {name: value if name == "name" else MASK for name, value in _members(pair)}
