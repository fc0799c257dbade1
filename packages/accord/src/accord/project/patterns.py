"""Regular expressions of strangers, compiled by RE2, which matches in linear time.

Python's `re` can take years to match a short pattern (`(a+)+$`), and nothing can stop it meanwhile. So `re` never sees
the pattern of a peer or of a model. The extra `patterns` installs RE2.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

LONGEST_PATTERN = 1_000
"""Characters that a pattern may have."""
_MEMORY = 128 * 1024


def has_engine() -> bool:
    """Whether RE2 is installed."""
    return _engine() is not None


@functools.lru_cache(maxsize=64)
def compiled(pattern: str) -> Any:
    """The pattern, compiled; None without RE2, for one that RE2 does not support, and for one that is too long."""
    engine = _engine()
    if engine is None or len(pattern) > LONGEST_PATTERN:
        return None
    options = engine.Options()
    options.max_mem, options.log_errors, options.never_capture = _MEMORY, False, True
    try:
        return engine.compile(pattern, options)
    except (engine.error, UnicodeEncodeError):
        return None


@functools.cache
def _engine() -> Any:
    try:
        engine = importlib.import_module("re2")
    except ImportError:
        return None
    return engine if hasattr(engine, "Options") else None  # another package has the same name
