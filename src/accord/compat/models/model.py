"""`BaseModel`: what programs construct, read, change and dump, as they do with pydantic's.

An instance's `__dict__` holds the fields that were given, under their names here. So an attribute is an ordinary one,
and the fields that were set are known without a second set. A default is made when it is first read, and kept beside:
changing it works, and it still does not count as given.

A model learns its fields when it is first used. A program names many models and uses few of them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, dataclass_transform

import msgspec

from accord.compat.models import dumping
from accord.compat.models.fields import Field, Plan
from accord.compat.models.foreign import pydantic_schema
from accord.compat.models.invalid import Misfit, Place, ValidationError, kind


class _Fields:
    """`Model.model_fields`: the fields of the class, by name."""

    def __get__(self, _: object, cls: type[BaseModel]) -> dict[str, Field]:
        return cls.model_plan().fields


@dataclass_transform(kw_only_default=True)
class BaseModel:
    """A value of the protocol, as the official Python SDK's models are: mutable, and checked when it is made."""

    __slots__ = ("__dict__", "__weakref__", "_made")

    model_fields: ClassVar[Any] = _Fields()
    model_config: ClassVar[dict[str, Any]] = {"populate_by_name": True}
    __plan_made__: ClassVar[Plan | None] = None
    model_keeps_others: ClassVar[bool] = False
    """Whether it keeps members that it does not know."""

    def __init__(self, /, **data: Any) -> None:
        try:
            self.__dict__.update(self._read(data))
        except Misfit as misfit:
            raise ValidationError(type(self).__name__, misfit.problems) from None

    # What the class knows

    @classmethod
    def model_learn(cls) -> tuple[list[Field], dict[str, str]]:
        """The fields of this model, and its tags; the builder of models replaces it."""
        return [], {}

    @classmethod
    def model_plan(cls) -> Plan:
        """The fields as tables, made when they are first needed."""
        made = cls.__plan_made__
        if made is None:
            made = cls.__plan_made__ = Plan(*cls.model_learn())
            for field in made.fields.values():
                if field.is_plain:
                    setattr(cls, field.name, field.default)  # reading it costs no more than any attribute
        return made

    def __init_subclass__(cls) -> None:
        added = [name for name, hint in inspect.get_annotations(cls).items() if "ClassVar" not in str(hint)]
        if added:
            raise TypeError(f"{cls.__name__} adds {added[0]!r}: a model cannot get more fields; use field_meta")
        cls.__plan_made__ = None

    @classmethod
    def model_name_of(cls, alias: str) -> str:
        """The name of a field here, from its name on the wire."""
        field = cls.model_plan().by_key.get(alias)
        return alias if field is None else field.name

    @classmethod
    def model_take(cls, value: Any) -> Self:
        """This value as a field of this type holds it: a model as it is, a plain object as a new model."""
        if value.__class__ is cls:
            return cast("Self", value)
        if isinstance(value, cls):
            # The field's own type decides what is sent: a variant's tag does not belong to a field without one.
            return cls._of({key: each for key, each in vars(value).items() if key in cls.model_plan().fields})
        if value.__class__ is dict or isinstance(value, Mapping):
            return cls._of(cls._read(cast("Mapping[str, Any]", value)))
        raise Misfit(f"must be {cls.__name__} or an object, got {kind(value)}")

    @classmethod
    def _of(cls, values: dict[str, Any]) -> Self:
        self = cls.__new__(cls)
        object.__setattr__(self, "__dict__", values)
        return self

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        plan = cls.__plan_made__ or cls.model_plan()
        values: dict[str, Any] = plan.tags.copy()
        problems: list[tuple[Place, str]] | None = None
        for key, value in data.items():
            field = plan.by_key.get(key)
            if field is None:
                if cls.model_keeps_others:
                    values[key] = value
                continue
            try:
                values[field.name] = field.read(value)
            except Misfit as misfit:
                problems = (problems or []) + misfit.at(field.alias)
        missing = plan.required - values.keys()
        if problems or missing:
            wanted = [((plan.fields[name].alias,), "is required") for name in plan.fields if name in missing]
            raise Misfit.of([*(problems or []), *(it for it in wanted if not _named(it[0], problems))])
        return values

    # Reading and changing

    if not TYPE_CHECKING:  # a checker knows the fields from the stub, and finds wrong names

        def __getattr__(self, name: str) -> Any:
            field = type(self).model_plan().fields.get(name)
            if field is not None:
                made = self._defaults()
                if name not in made:
                    made[name] = field.default
                return made[name]
            if not name.startswith("_") and (snake := _snake(name)) != name and snake in type(self).model_plan().fields:
                return getattr(self, snake)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _defaults(self) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", object.__getattribute__(self, "_made"))
        except AttributeError:
            made: dict[str, Any] = {}
            object.__setattr__(self, "_made", made)
            return made

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).model_plan().fields and not self.model_keeps_others and not name.startswith("_"):
            raise ValueError(f"{type(self).__name__} has no field {name!r}; for extensions use field_meta")
        self.__dict__[name] = value

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were given."""
        return set(self.__dict__)

    @property
    def model_extra(self) -> dict[str, Any] | None:
        """The members that the model does not know; None for a model that does not keep them."""
        known = type(self).model_plan().fields
        return (
            {key: value for key, value in vars(self).items() if key not in known} if self.model_keeps_others else None
        )

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in dumping.names_of(self))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return dict(self) == dict(cast("BaseModel", other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"

    # Pydantic's methods

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> Self:
        """The model of a plain object, or of a model; raises ValidationError."""
        try:
            return cls.model_take(obj)
        except Misfit as misfit:
            raise ValidationError(cls.__name__, misfit.problems) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes, **_: Any) -> Self:
        """The model of a JSON text; raises ValidationError."""
        try:
            value = msgspec.json.decode(json_data)
        except msgspec.DecodeError as error:
            raise ValidationError(cls.__name__, [((), f"invalid JSON: {error}")]) from None
        return cls.model_validate(value)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """A model of these values, unchecked."""
        return cls._of({**cls.model_plan().tags, **{cls.model_name_of(key): value for key, value in values.items()}})

    @classmethod
    def model_rebuild(cls, **_: Any) -> bool:
        """Nothing: a model learns its fields when it is first used."""
        return True

    @classmethod
    def model_json_schema(
        cls, by_alias: bool = True, ref_template: str = "#/$defs/{model}", **_: Any
    ) -> dict[str, Any]:
        """The JSON Schema of the model; those of the models that it holds are under `$defs`."""
        from accord.compat.models.describing import json_schema

        return json_schema(cls, by_alias=by_alias, ref_template=ref_template)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with these fields changed; `deep` copies what the fields hold, too."""
        values = copy.deepcopy(vars(self)) if deep else dict(vars(self))
        return self._of({**values, **(update or {})})

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """The model as plain values: see `dumping.dump` for the options."""
        plain: dict[str, Any] = dumping.dump(self, **options)
        return plain

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """The model as JSON text."""
        plain: Any = {**options, "mode": "json"}
        return dumping.text(dumping.dump(self, **plain), indent)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: Any) -> Any:
        """How pydantic checks a field of this type."""
        return pydantic_schema(cls, handler)


class RootModel(BaseModel):
    """A model that stands for one value, its `root`."""

    def __init__(self, /, root: Any) -> None:
        super().__init__(root=root)

    @classmethod
    def model_take(cls, value: Any) -> Self:
        """This value as a field of this type holds it."""
        if isinstance(value, cls):
            return value
        try:
            return cls._of(cls._read({"root": value}))
        except Misfit as misfit:
            raise Misfit.of([(place[1:], problem) for place, problem in misfit.problems]) from None


def _named(place: Place, problems: list[tuple[Place, str]] | None) -> bool:
    return any(other[:1] == place for other, _ in problems or [])


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
