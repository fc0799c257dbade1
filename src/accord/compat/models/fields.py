"""`Field`: one field of a model, with its two names, its check and its default."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from accord.compat.models.annotations import annotation_of
from accord.compat.models.checks import Check, Home, ModelNamed, check_of
from accord.compat.models.invalid import Misfit
from accord.schema import codec, hints
from accord.schema.base import UNSET, Mark

_META = "meta"
_PLAIN = (str, int, float, bool, type(None))


class Field:
    """One field of a model: what pydantic's `FieldInfo` tells of it, and how its values are read."""

    __slots__ = (
        "_check",
        "_default",
        "_salvages",
        "alias",
        "description",
        "home",
        "is_plain",
        "name",
        "node",
        "required",
    )

    def __init__(
        self,
        name: str,
        alias: str,
        node: hints.Node | ModelNamed,
        home: Home,
        *,
        check: Check | None = None,
        required: bool = True,
        default: Callable[[], Any] | None = None,
        salvages: bool = False,
        description: str | None = None,
    ) -> None:
        self.name = name
        """The name of the attribute."""
        self.alias = alias
        """The name on the wire."""
        self.required = required
        self.node = node
        """The type."""
        self.description = description
        """What the field means."""
        self.home = home
        """Where the models are that values of the field may be."""
        self._check = check or check_of(node, home)
        self._default = default
        self._salvages = salvages
        self.is_plain = not required and isinstance(self.default, _PLAIN)
        """Whether the default is a value that cannot be changed."""

    @property
    def annotation(self) -> Any:
        """The type as an annotation of Python."""
        of_given = annotation_of(self.node, self.home)
        return of_given if self.required or self.default is not None else of_given | None

    def is_required(self) -> bool:
        """Whether a model cannot be made without it."""
        return self.required

    @property
    def default(self) -> Any:
        """The value of a field that was not given; a new one each time, so that it can be changed."""
        return None if self._default is None else self._default()

    def read(self, value: Any) -> Any:
        """The value that the field holds when it is given this; raises Misfit."""
        if value is None and not self.required:
            return None
        try:
            return self._check(value)
        except Misfit:
            if self._salvages:
                return self.default
            raise


class Plan:
    """What a model has learned of its fields."""

    __slots__ = ("aliases", "by_key", "fields", "is_root", "required", "tags")

    def __init__(self, fields: list[Field], tags: dict[str, str]) -> None:
        self.fields = {field.name: field for field in fields}
        self.by_key = {key: field for field in fields for key in (field.alias, field.name)}
        self.required = frozenset(field.name for field in fields if field.required) - tags.keys()
        self.tags = tags
        self.aliases = {field.name: field.alias for field in fields}
        self.is_root = list(self.fields) == ["root"]


def field_of(field: hints.Field, home: Home, *, empty: bool = False) -> Field:
    """The field of a model, from that of our type. An empty list is the default only if `empty` says so, else None."""
    is_meta = field.name == _META
    return Field(
        "field_meta" if is_meta else field.name,
        field.wire,
        field.node,
        home,
        required=field.required,
        default=None if field.required else _default(field, home, empty=empty),
        salvages=Mark.DEFAULT_ON_ERROR in field.marks,
    )


def tag_field(name: str, alias: str, tag: str, home: Home) -> Field:
    """The field that shows which variant of a union a model is."""

    def check(value: Any) -> Any:
        if value == tag:
            return tag
        raise Misfit(f"must be {tag!r}, got {value!r:.60}")

    return Field(name, alias, hints.OneWord((tag,)), home, check=check)


def _default(field: hints.Field, home: Home, *, empty: bool) -> Callable[[], Any]:
    made = field.default() if field.default is not None else None
    if made is UNSET or (not empty and made in ([], {}) and isinstance(made, (list, dict))):
        made = None
    if isinstance(made, _PLAIN):
        return lambda: made
    # A default of ours is one of our types; the model holds the model of it.
    read = check_of(field.node, home)
    plain = codec.plain(made)
    return lambda: read(copy.deepcopy(plain))
