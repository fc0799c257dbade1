"""Models as JSON Schema, for `model_json_schema` and for pydantic's own documents.

The names are those of the models. `accord schema` writes the whole protocol instead, with the protocol's names.
"""

from __future__ import annotations

from typing import Any

from accord.compat.models.checks import ModelNamed
from accord.compat.models.fields import Field, Plan
from accord.schema import hints

REFERENCE = "#/$defs/{model}"

NULL = {"type": "null"}
_TYPES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


class Describer:
    """Writes one document. A `reference` of None writes each model where it is used, instead of a definition."""

    def __init__(self, reference: str | None = REFERENCE, *, by_alias: bool = True) -> None:
        self._reference = reference
        self._by_alias = by_alias
        self.definitions: dict[str, Any] = {}
        """The models that the document refers to, by their names."""

    def model(self, cls: Any) -> dict[str, Any]:
        """The description of a model itself."""
        plan: Plan = cls.model_plan()
        says = {"description": " ".join(cls.__doc__.split())} if cls.__doc__ else {}
        if plan.is_root:
            return {**self._field(plan.fields["root"]), **says, "title": cls.__name__}
        described: dict[str, Any] = {
            **says,
            "properties": {self._name(field): self._field(field) for field in plan.fields.values()},
            "title": cls.__name__,
            "type": "object",
        }
        if required := [self._name(field) for field in plan.fields.values() if field.required]:
            described["required"] = required
        return described

    def _field(self, field: Field) -> dict[str, Any]:
        described = self._type(field.node, field)
        default = field.default
        if field.required or hasattr(default, "model_plan"):
            return described
        if default is None and described and NULL not in described.get("anyOf", ()):
            described = {"anyOf": [described, NULL]}
        return {**described, "default": default}

    def _type(self, node: hints.Node | ModelNamed, field: Field) -> dict[str, Any]:
        match node:
            case ModelNamed(name):
                return self._model(field.home.get(name))
            case hints.Object(cls):
                return self._model(field.home.model_for(cls))
            case hints.Scalar():
                return _scalar(node)
            case hints.OneWord(known):
                return {"type": "string"} if node.open else {"enum": list(known), "type": "string"}
            case hints.ListOf(item):
                return {"items": self._type(item, field), "type": "array"}
            case hints.MapOf(value):
                return {"additionalProperties": self._type(value, field) or True, "type": "object"}
            case hints.Tagged(_, variants):
                other = field.home.other_than(variants[0][1])
                models = [*(field.home.model_for(cls) for _, cls in variants), *([other] if other else [])]
                return {"anyOf": [self._model(model) for model in models]}
            case hints.Chosen(_, variants) | hints.AnyOf(variants):
                return {"anyOf": [self._type(variant, field) for variant in variants]}
            case hints.Named(_, inner):
                return self._type(inner, field)
            case _:
                return {}

    def _model(self, model: Any) -> dict[str, Any]:
        if self._reference is None:
            return self.model(model)
        name = model.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # so that a model that holds itself refers to this
            self.definitions[name] = self.model(model)
        return {"$ref": self._reference.format(model=name)}

    def _name(self, field: Field) -> str:
        return field.alias if self._by_alias else field.name


def json_schema(cls: Any, *, by_alias: bool, ref_template: str) -> dict[str, Any]:
    """The JSON Schema of a model; the models that it holds are under `$defs`."""
    describer = Describer(ref_template, by_alias=by_alias)
    described = describer.model(cls)
    return {"$defs": dict(sorted(describer.definitions.items())), **described} if describer.definitions else described


def _scalar(scalar: hints.Scalar) -> dict[str, Any]:
    bounds = {"minimum": scalar.least, "maximum": scalar.most, "minLength": scalar.shortest}
    return {"type": _TYPES[scalar.type], **{name: bound for name, bound in bounds.items() if bound is not None}}
