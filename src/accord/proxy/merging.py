"""What a handler changed in a message, applied to the JSON that arrived. PURE.

A handler holds a typed value, which has no room for members that this version of Accord does not know. So the value is
compared before and after, and only the difference is applied: everything else is sent as it came.
"""

from __future__ import annotations

from typing import Any, cast

from accord.schema import codec
from accord.schema.base import Json


def with_changes(raw: bytes, before: Any, after: Any) -> bytes:
    """The JSON of `after`, in which all that equals `before` is as it was in `raw`.

    >>> from accord.schema.v1 import TextContent
    >>> with_changes(b'{"type":"text","text":"a","new":1}', TextContent("a"), TextContent("b"))
    b'{"type":"text","text":"b","new":1}'
    """
    if after is before:
        return raw
    old, new = codec.loads(codec.encode(before)), codec.loads(codec.encode(after))
    return raw if old == new else codec.encode(merged(codec.loads(raw), old, new))


def merged(raw: Json, before: Json, after: Json) -> Json:
    """`raw`, changed in the way in which `after` differs from `before`."""
    if before == after:
        return raw
    if isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merged_objects(cast("Any", raw), cast("Any", before), cast("Any", after))
    if isinstance(raw, list) and isinstance(before, list) and isinstance(after, list):
        return _merged_lists(cast("Any", raw), cast("Any", before), cast("Any", after))
    return after


def _merged_objects(raw: dict[str, Json], before: dict[str, Json], after: dict[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in raw.items() if name in after or name not in before}
    changed = {
        name: merged(raw[name], before[name], value) if name in raw and name in before else value
        for name, value in after.items()
    }
    return kept | changed


def _merged_lists(raw: list[Json], before: list[Json], after: list[Json]) -> list[Json]:
    """Items that were there are as they came, wherever they are now; items of one place are merged."""
    if len(raw) != len(before):
        return after
    if len(before) == len(after):
        return [merged(*items) for items in zip(raw, before, after, strict=True)]
    found: list[Json] = []
    at = 0
    for item in after:
        place = next((i for i in range(at, len(before)) if before[i] == item), None)
        found.append(item if place is None else raw[place])
        at = at if place is None else place + 1
    return found
