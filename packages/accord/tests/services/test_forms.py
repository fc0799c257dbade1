"""What may be filled into a form is what JSON Schema says; what is typed means what it looks like."""

import contextlib
import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

import accord
from accord import v1
from accord.project.search import LONGEST_PATTERN
from accord.schema import codec
from accord.services.form_fields import defaults, fields_of, form_excess, has_format, matches, problems, secrets_in

NAMES = st.sampled_from(["a", "b", "c d", "ü"])
WORDS = st.text("abü1 ", max_size=4)
SMALL = st.integers(-3, 5)
TITLES = {"title": st.text(max_size=4), "description": st.text(max_size=4)}


def some(fixed=None, /, **optional):
    return st.fixed_dictionaries(fixed or {}, optional=optional)


def options(values):
    return [{"const": value, "title": value.upper()} for value in values]


CHOICES = st.lists(WORDS, min_size=1, max_size=4, unique=True)
PATTERNS = st.sampled_from(["^a", "b$", "[0-9]+", "^(a|b)*$", "a{2,3}"])
TEXTS = some(
    {"type": st.just("string")},
    **TITLES,
    minLength=st.integers(0, 4),
    maxLength=st.integers(0, 4),
    pattern=PATTERNS,
    format=st.just("date"),
    default=WORDS,
)
SELECTS = st.one_of(
    some({"type": st.just("string"), "enum": CHOICES}, default=WORDS),
    some({"type": st.just("string"), "oneOf": CHOICES.map(options)}, default=WORDS),
)
NUMBERS = some(
    {"type": st.just("number")}, minimum=SMALL | st.floats(-3, 5), maximum=SMALL | st.floats(-3, 5), default=SMALL
)
INTEGERS = some({"type": st.just("integer")}, minimum=SMALL, maximum=SMALL, default=SMALL)
BOOLEANS = some({"type": st.just("boolean")}, default=st.booleans())
SETS = some(
    {
        "type": st.just("array"),
        "items": CHOICES.map(lambda it: {"type": "string", "enum": it})
        | CHOICES.map(lambda it: {"anyOf": options(it)}),
    },
    minItems=st.integers(0, 3),
    maxItems=st.integers(0, 3),
    default=st.lists(WORDS, max_size=3),
)
SCHEMAS = some(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(NAMES, TEXTS | SELECTS | NUMBERS | INTEGERS | BOOLEANS | SETS, max_size=4),
    },
    required=st.lists(NAMES, unique=True),
    title=st.text(max_size=3),
)
VALUES = st.one_of(
    WORDS,
    st.sampled_from(["2026-11-21", "2026-02-30", "aa", "b"]),
    SMALL,
    st.floats(-4, 6),
    st.booleans(),
    st.lists(WORDS, max_size=4),
    st.lists(SMALL, max_size=2),
    st.none(),
)


def plausible(schema):
    """Contents that have a chance to be right: values of the choices, among anything."""
    found = {}
    for name, field in schema["properties"].items():
        items = field.get("items", field)
        choices = items.get("enum") or [it["const"] for it in items.get("oneOf", items.get("anyOf", []))]
        chosen = st.sampled_from(choices) if choices else st.nothing()
        found[name] = (st.lists(chosen, max_size=3) if field["type"] == "array" and choices else chosen) | VALUES
    return st.fixed_dictionaries({}, optional=found | {"another": VALUES})


@settings(max_examples=400)
@given(st.data())
def test_validation_agrees_with_json_schema(data):
    schema = data.draw(SCHEMAS)
    content = data.draw(plausible(schema))
    checker = jsonschema.FormatChecker(["date"])
    oracle = jsonschema.Draft202012Validator(schema, format_checker=checker)
    ours = problems(codec.decode(codec.encode(schema), v1.ElicitationSchema), content)
    wrong = {error.absolute_path[0] for error in oracle.iter_errors(content) if error.absolute_path}
    missing = {name for name in schema.get("required", []) if name not in content}
    assert set(ours) == wrong | missing


@given(SCHEMAS)
def test_defaults_are_filled_in_where_they_are_right(schema):
    decoded = codec.decode(codec.encode(schema), v1.ElicitationSchema)
    filled = defaults(decoded)
    assert not set(problems(decoded, filled)) & set(filled)
    for name, field in schema["properties"].items():
        if "default" in field and name not in filled:
            assert name in problems(decoded, {name: field["default"]})


@given(SCHEMAS, st.data())
def test_whatever_is_typed_is_either_right_or_has_a_problem(schema, data):
    for field in fields_of(codec.decode(codec.encode(schema), v1.ElicitationSchema)):
        with contextlib.suppress(ValueError):
            assert field.problem(field.parse(data.draw(st.text(max_size=5)))) is None


COLORS = [v1.EnumOption("#f00", "Red"), v1.EnumOption("2", "Green"), v1.EnumOption("b", "Blue")]


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        (v1.StringPropertySchema(), " text ", "text"),
        (v1.StringPropertySchema(one_of=COLORS), "red", "#f00"),
        (v1.StringPropertySchema(one_of=COLORS), "#f00", "#f00"),
        (v1.StringPropertySchema(one_of=COLORS), "2", "2"),
        (v1.StringPropertySchema(one_of=COLORS), "3", "b"),
        (v1.StringPropertySchema(enum=["x", "y"]), "2", "y"),
        (v1.NumberPropertySchema(), "1.5", 1.5),
        (v1.IntegerPropertySchema(), "-3", -3),
        (v1.BooleanPropertySchema(), "Yes", True),
        (v1.BooleanPropertySchema(), "n", False),
        (v1.MultiSelectPropertySchema(v1.TitledMultiSelectItems(COLORS)), "blue, 1, Blue", ["b", "#f00"]),
        (v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["x"])), "", []),
    ],
)
def test_what_is_typed_means(schema, typed, value):
    [field] = fields_of(v1.ElicitationSchema({"it": schema}))
    assert field.parse(typed) == value


@pytest.mark.parametrize(
    ("schema", "typed", "problem"),
    [
        (v1.StringPropertySchema(min_length=3), "ab", "must have at least 3 characters"),
        (v1.StringPropertySchema(format="email"), "me@", "must be an e-mail address"),
        (v1.StringPropertySchema(enum=["x"]), "2", "must be one of the choices"),
        (v1.NumberPropertySchema(), "nan", "must be a number"),
        (v1.NumberPropertySchema(maximum=2), "3", "must be at most 2"),
        (v1.IntegerPropertySchema(), "1.5", "must be a whole number"),
        (v1.BooleanPropertySchema(), "maybe", "must be yes or no"),
        (v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["x", "y"]), max_items=1), "x,y", "at most 1"),
    ],
)
def test_a_problem_is_said_in_a_few_words(schema, typed, problem):
    [field] = fields_of(v1.ElicitationSchema({"it": schema}))
    with pytest.raises(ValueError, match=problem):
        field.parse(typed)


@pytest.mark.requirement("elicitation.form.unknown-type-not-shown")
def test_a_property_of_unknown_type_is_not_drawn():
    properties = {
        "known": {"type": "boolean"},
        "odd": {"type": "_color"},
        "many": {"type": "array", "items": {"type": "_x"}},
    }
    schema = codec.decode(codec.encode({"type": "object", "properties": properties}), v1.ElicitationSchema)
    assert [field.name for field in fields_of(schema)] == ["known"]
    needed = {"type": "object", "properties": properties, "required": ["odd"]}
    with pytest.raises(accord.RequestError, match="unsupported type"):
        fields_of(codec.decode(codec.encode(needed), v1.ElicitationSchema))


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("email", ["a@b.c", "a.b+c@d-e.example"], ["a", "@b.c", "a@", "a@b..c", "a b@c.d", "a@-b.c", ".a@b.c"]),
        ("uri", ["https://example.com/a?b#c", "mailto:a@b", "urn:x:y"], ["example.com", "/a", "http://a b", "a:%zz"]),
        ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "20240229", "2024-02-29T00:00:00Z"]),
        (
            "date-time",
            ["2024-02-29T23:59:60Z", "2024-02-29t00:00:00.123+01:00"],
            ["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29T00:00:00", "2024-02-30T00:00:00Z", "x"],
        ),
    ],
)
def test_formats(name, right, wrong):
    assert [text for text in right if not has_format(text, name)] == []
    assert [text for text in wrong if has_format(text, name)] == []


# Patterns

SLOW = [
    ("^" + "a?" * 100 + "a" * 100 + "$", "a" * 100, True),
    ("(?:a|a)" * 50 + "b", "a" * 50 + "c", False),
    ("(?:a|aa)" * 50 + "b", "a" * 100 + "c", False),
    ("^(a+)+$", "a" * 60 + "!", False),
    ("^(a|aa)+$", "a" * 60 + "!", False),
    ("(.*a){15}$", "a" * 60 + "!", False),
    ("^[a-z]+(-[a-z]+)*$", "a-slug-1", False),
    ("(?<year>[0-9]{4})", "in 2026", True),
]


@pytest.mark.timeout(10)
@pytest.mark.parametrize(("pattern", "text", "found"), SLOW)
def test_a_pattern_on_which_a_backtracking_engine_never_ends_is_matched(pattern, text, found):
    assert matches(pattern, text) is found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[", "x"),
        ("(?!a)", "b"),
        (r"(a*)*\1b", "aab"),
        ("(((a{1,100}){1,100}){1,100})", "a"),
        (r"\pL{1,900}" * 10, "a"),
        ("a" * (LONGEST_PATTERN + 1), "a"),
        ("[a-z]{0,500}$", "a" * 1_000_000),
        ("\ud83d", "a"),
        ("a", "\ud83d"),
    ],
)
def test_a_pattern_that_cannot_be_matched_in_few_steps_is_left_to_the_agent(pattern, text):
    assert matches(pattern, text) is None


def test_without_re2_patterns_are_left_to_the_agent_and_none_is_sent():
    program = """
import sys
sys.modules["re2"] = None
from accord import v1
from accord.agent.form_schema import check
from accord.installation import install_command
from accord.services.form_fields import problems
from accord.services.form_fields import matches
schema = v1.ElicitationSchema({"it": v1.StringPropertySchema(pattern="^(a+)+$")})
assert matches("a", "b") is None
assert problems(schema, {"it": "a" * 60 + "!"}) == {}
try:
    check(schema)
except ValueError as error:
    assert install_command("patterns") in str(error), error
else:
    raise SystemExit("the form was sent")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_problem_shows_a_pattern_as_plain_and_short_text():
    patterns = {"^\x1b]0;T\x07\u202e\u2028$": "^�]0;T���$", "b" * 500: f"{'b' * 80}…"}
    for pattern, shown in patterns.items():
        [field] = fields_of(v1.ElicitationSchema({"it": v1.StringPropertySchema(pattern=pattern)}))
        assert field.problem("wrong") == f"must match {shown}"


# Bounds


class CountedText(str):
    """A text that counts how often it is hashed or compared."""

    __slots__ = ()
    looks = 0

    def __hash__(self):
        CountedText.looks += 1
        return str.__hash__(self)

    def __eq__(self, other):
        CountedText.looks += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("titled", [False, True])
def test_many_choices_are_looked_at_once_each(titled):
    def looks(count):
        names = [CountedText(f"choice {number}") for number in range(count)]
        options = [v1.EnumOption(name, name) for name in names]
        items = v1.TitledMultiSelectItems(options) if titled else v1.StringMultiSelectItems(names)
        form = v1.ElicitationSchema({"it": v1.MultiSelectPropertySchema(items, default=[str(name) for name in names])})
        CountedText.looks = 0
        assert len(defaults(form)["it"]) == count
        assert fields_of(form)[0].parse(",".join(names)) == names
        return CountedText.looks

    assert looks(2_000) <= 20 * 2_000


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (
            v1.ElicitationSchema({str(number): v1.BooleanPropertySchema() for number in range(201)}),
            "the form has 201 fields, at most 200 are allowed: ask in several forms",
        ),
        (v1.ElicitationSchema(required=[""] * 500), "the form has 500 fields"),
        (
            v1.ElicitationSchema({"it": v1.StringPropertySchema(enum=[""] * 5_001, one_of=[])}),
            "the form has 5,001 choices, at most 5,000",
        ),
        (
            v1.ElicitationSchema(
                {"it": v1.MultiSelectPropertySchema(v1.StringMultiSelectItems(["a"]), default=["a"] * 5_000)}
            ),
            "the form has 5,001 choices",
        ),
        (v1.ElicitationSchema(title="x" * 200_001), "the form has 200,001 characters, at most 200,000"),
        (v1.ElicitationSchema({"x" * 300_000: v1.BooleanPropertySchema()}), "the form has 300,000 characters"),
        (
            v1.ElicitationSchema({"a": v1.StringPropertySchema(pattern="x" * 100_000, default="x" * 100_000)}),
            "the form has 200,001 characters",
        ),
    ],
)
def test_a_form_past_its_bounds_is_refused_and_says_what_is_allowed(schema, problem):
    assert form_excess(schema).startswith(problem)


def test_a_large_form_of_an_honest_agent_is_within_the_bounds():
    countries = [v1.EnumOption(f"c{number}", f"Country {number}", description="x" * 20) for number in range(300)]
    fields = {f"f{number}": v1.StringPropertySchema(one_of=countries, description="x" * 200) for number in range(10)}
    assert form_excess(v1.ElicitationSchema(fields)) is None


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf")])
def test_a_number_of_any_size_is_judged(value):
    schema = v1.ElicitationSchema({"it": v1.NumberPropertySchema(maximum=10, minimum=-10)})
    assert problems(schema, {"it": value})["it"].startswith("must be")


def test_a_uri_of_any_length_is_read_without_going_back():
    assert has_format("a:" + "b%20" * 100_000, "uri")
    assert not has_format("a:" + "b%20" * 100_000 + " ", "uri")


@pytest.mark.parametrize(
    ("name", "title", "secret"),
    [
        ("apiKey", None, True),
        ("token", None, True),
        ("x", "PIN", True),
        ("x", "Client secret", True),
        ("maxTokens", None, False),
        ("pinned", "Keep it pinned", False),
        ("key", "Sort key", False),
    ],
)
def test_a_field_for_a_secret_is_known_by_its_name(name, title, secret):
    schema = v1.ElicitationSchema({name: v1.StringPropertySchema(title=title)})
    assert secrets_in(schema) == [name] * secret
