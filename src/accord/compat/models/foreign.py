"""What pydantic asks of our models, where a program has fields of our models in pydantic's: imported only then."""

from __future__ import annotations

from typing import Annotated, Any


class _Described:
    """Tells pydantic the JSON Schema of a model, when a program asks for it."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get_pydantic_json_schema__(self, _: Any, handler: Any) -> Any:
        # Without `$defs`: pydantic keeps the definitions of a document, and only for models of its own.
        from accord.compat.models.describing import Describer

        return Describer(None).model(self._cls)


def pydantic_schema(cls: Any, handler: Any) -> Any:
    """The check of a field of this type in a model of pydantic's, or in its TypeAdapter."""
    from pydantic import PlainSerializer, PlainValidator

    def plain(model: Any) -> Any:
        return model.model_dump(mode="json", by_alias=True, exclude_none=True)

    return handler(Annotated[Any, PlainValidator(cls.model_validate), PlainSerializer(plain), _Described(cls)])
