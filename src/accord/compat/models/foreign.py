"""What pydantic asks of our models, where a program has fields of our models in pydantic's: imported only then."""

from __future__ import annotations

from typing import Annotated, Any


def pydantic_schema(cls: Any, handler: Any) -> Any:
    """The check of a field of this type in a model of pydantic's, or in its TypeAdapter."""
    from pydantic import PlainSerializer, PlainValidator

    def plain(model: Any) -> Any:
        return model.model_dump(mode="json", by_alias=True, exclude_none=True)

    return handler(Annotated[Any, PlainValidator(cls.model_validate), PlainSerializer(plain)])
