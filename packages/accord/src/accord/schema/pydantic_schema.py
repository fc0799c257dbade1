"""The protocol's types as fields of pydantic models and as bodies of FastAPI: what pydantic asks our types for.

Nothing here is loaded before pydantic asks. Reading goes by the same tolerant reader as the wire, whose errors say the
path; writing gives the wire's JSON; and the JSON Schema is the one of `describe`, with all types in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pydantic_core import CoreSchema, core_schema

from accord.schema import codec
from accord.schema.base import Json, Unknown
from accord.schema.describe import Inlined
from accord.schema.type_tree import Tagged, node_of


def schema_of(wanted: Any) -> CoreSchema:
    """The schema by which pydantic reads and writes a type of the protocol: a class, or an open union."""
    node = node_of(wanted)
    variants = [cls for _, cls in node.variants] if isinstance(node, Tagged) else []
    kinds: tuple[type[object], ...] = (wanted,) if isinstance(wanted, type) else (Unknown, *variants)

    def read(value: Any) -> Any:
        return value if isinstance(value, kinds) else codec.convert(value, cast("type[Any]", wanted))

    def describe(_schema: CoreSchema, _handler: Callable[[CoreSchema], Any]) -> Json:
        return Inlined().node(node)

    return core_schema.no_info_plain_validator_function(
        read,
        serialization=core_schema.plain_serializer_function_ser_schema(codec.plain),
        metadata={"pydantic_js_functions": [describe]},
    )
