"""Forms: classes as schemas, and what a user filled in as values of them."""

import enum
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Literal, NamedTuple, TypedDict

import msgspec
import pytest

from accord import Model, ProtocolError, v1
from accord.agent.form_schema import filled_in, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Everything:
    name: Annotated[str, msgspec.Meta(title="Your name", description="As you like", pattern="^[a-z]+$")]
    port: Annotated[int, msgspec.Meta(ge=1024, lt=65536)]
    share: Annotated[float, msgspec.Meta(ge=0, le=1)]
    colour: Colour
    size: Literal["s", "m"] | None
    day: date
    moment: datetime
    many: Annotated[list[Literal["a", "b"]], msgspec.Meta(min_length=1, max_length=2)]
    log_it: bool = True
    colours: list[Colour] = field(default_factory=list)


def test_a_class_is_a_form():
    schema = schema_of(Everything)
    assert schema.required == ["name", "port", "share", "colour", "day", "moment", "many"]
    assert schema.properties == {
        "name": v1.StringPropertySchema("Your name", "As you like", pattern="^[a-z]+$"),
        "port": v1.IntegerPropertySchema("Port", minimum=1024, maximum=65535),
        "share": v1.NumberPropertySchema("Share", minimum=0, maximum=1),
        "colour": v1.StringPropertySchema("Colour", enum=["red", "blue"]),
        "size": v1.StringPropertySchema("Size", enum=["s", "m"]),
        "day": v1.StringPropertySchema("Day", format="date"),
        "moment": v1.StringPropertySchema("Moment", format="date-time"),
        "many": v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["a", "b"]), "Many", min_items=1, max_items=2),
        "log_it": v1.BooleanPropertySchema("Log it", default=True),
        "colours": v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["red", "blue"]), "Colours"),
    }


def test_what_was_filled_in_is_a_value_of_the_class():
    content = {
        "name": "ada",
        "port": 3000,
        "share": 1,
        "colour": "blue",
        "day": "2026-11-21",
        "moment": "2026-11-21T12:00:00Z",
        "many": ["b"],
        "size": "m",
    }
    filled = filled_in(Everything, content)
    assert (filled.colour, filled.day, filled.many, filled.log_it) == (Colour.BLUE, date(2026, 11, 21), ["b"], True)


def test_named_tuples_and_typed_dictionaries_are_forms_as_well():
    class Pair(NamedTuple):
        first: str
        second: int = 2

    class Options(TypedDict, total=False):
        depth: int

    assert schema_of(Pair).required == ["first"]
    assert schema_of(Options).required is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"name": "x", "n": 1.5}, "n: must be a whole number"),
        ({"name": "x", "n": True}, "n: must be a number"),
        ({"name": "x", "n": 11}, "n: must be at most 10"),
        ({"name": 3}, "name: must be text"),
        ({"name": "x", "yes": "yes"}, "yes: must be yes or no"),
        ({"name": "x", "some": "a"}, "some: must be a list"),
        ({"name": "x", "some": ["c"]}, "some: must contain only the given choices"),
        ({"name": "x", "some": []}, "some: must have at least 1 of the choices"),
        ({"name": "x", "titled": ["a"]}, "titled: must contain only the given choices"),
        ({"name": "x", "one": "a"}, "one: must be one of the choices"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_a_schema_is_named(content, problem):
    titled = [v1.EnumOption("b", "B")]
    schema = v1.ElicitationSchema(
        {
            "name": v1.StringPropertySchema(),
            "n": v1.IntegerPropertySchema(maximum=10),
            "yes": v1.BooleanPropertySchema(),
            "some": v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["a"]), min_items=1),
            "titled": v1.MultiSelectPropertySchema(v1.TitledMultiSelectItems(titled)),
            "one": v1.StringPropertySchema(one_of=titled),
        },
        ["name"],
    )
    with pytest.raises(ProtocolError, match=problem):
        filled_in(schema, content)
    assert filled_in(schema, {"name": "x", "extra": 1}) == {"name": "x"}


@dataclass
class Nested:
    inner: Everything


@dataclass
class Ambiguous:
    value: int | str


@dataclass
class Numbered:
    value: Literal[1, 2]


@pytest.mark.requirement("elicitation.form.flat")
@pytest.mark.parametrize("form", [Nested, Ambiguous, Numbered, int, list[str]], ids=str)
def test_what_no_form_can_show_is_refused_where_it_is_made(form):
    with pytest.raises(TypeError, match="form"):
        schema_of(form)


def test_a_class_like_the_protocols_own_asks_for_its_own_fields_only():
    class Name(Model):
        first: str

    assert list(schema_of(Name).properties) == ["first"]
    assert filled_in(Name, {"first": "Ada"}) == Name("Ada")
