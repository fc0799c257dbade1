"""The tolerant reader, for values that the strict decoder refused.

Real peers send fields that are slightly wrong, variants that are newer than this version of Accord, and emoji cut in
two. The protocol defines for each field what to do then (see the markers in `base`). This module follows these rules:

1. An object that was refused is read field by field, because one of its fields is bad. The items of its lists and maps
   are first read strictly by msgspec, so a long list with one bad item costs little.
2. A bad field with `Tolerant` takes its default, a bad item of `ValidItems` is dropped, and `null` for `NullAsDefault`
   is the default. Any other bad field is a `Misfit`, which collects the path of the field while it is raised.
3. An unknown tag of an open union becomes `Unknown`, and so does an unknown second tag. A known tag with a bad payload
   is a `Misfit`. A union that has a single variant so far is also read without its tag, as msgspec does.
4. `1.0` is an integer. An unknown word of a `ReadOpen` set is kept.

The work is bounded: a reader never goes deeper than the types do, reads each value once for each list above it, and
refuses a message in which more than `MOST_REPAIRS` values are damaged or unknown.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import msgspec

from accord.schema import legacy
from accord.schema.base import Choice, Json, Mark, Unknown, with_unknown_members
from accord.schema.type_tree import (
    NULL,
    AnyOf,
    Anything,
    Chosen,
    Field,
    Foreign,
    ListOf,
    MapOf,
    Named,
    Node,
    Object,
    OneWord,
    Scalar,
    Tagged,
    fields_of,
    node_of,
    second_union,
)

MOST_REPAIRS = 10_000
"""The most values of one message that may be damaged or unknown. Each takes about 5 us."""

Reader: TypeAlias = Callable[[Json], Any]


class TooManyRepairs(Exception):
    """Too many values of a message are damaged or unknown."""


class _Repairs(threading.local):
    """The repairs that the message being read may still need."""

    left = MOST_REPAIRS
    keeping = False
    """Whether members are kept that the types do not know (see `schema.keeping`)."""

    def one_more(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyRepairs


class Misfit(Exception):
    """A value does not fit its type; each level that the error passes adds its step to the path."""

    def __init__(self, problem: str, *steps: str) -> None:
        super().__init__(problem)
        _repairs.one_more()
        self.problem = problem
        self.steps = list(steps)

    def path(self) -> str:
        """The place of the value: `$.update.content.text`."""
        return "$" + "".join(
            step if len(step) <= _LONGEST_STEP else f"{step[:_LONGEST_STEP]}…" for step in self.steps[::-1]
        )


@contextlib.contextmanager
def keeping_members() -> Generator[None]:
    """During this block, this thread's `read` keeps the members that the types do not know."""
    _repairs.keeping = True
    try:
        yield
    finally:
        _repairs.keeping = False


def read(hint: Any, value: Json) -> Any:
    """Read a plain value as this type; raises Misfit, TooManyRepairs or RecursionError."""
    _repairs.left = MOST_REPAIRS
    return reader(hint)(value)


@functools.cache
def reader(hint: Any) -> Reader:
    """A tolerant reader for values of this type."""
    return _reader(node_of(hint))


def strictly(choice: type[Any], value: Json) -> Any:
    """The hook that msgspec calls for a choice: reads the chosen variant strictly."""
    if not issubclass(choice, Choice):
        raise NotImplementedError
    chosen = choice.__choose__(value)
    if chosen is None:
        raise ValueError(f"the value fits no variant of {choice.__name__}")
    return convert_strictly(value, chosen)


def decoder_of(type: Any) -> msgspec.json.Decoder[Any]:
    """A strict decoder for this type; only one thread at a time makes one.

    msgspec stores its knowledge about a class on the class, and puts it there before it is complete. A second thread
    that then uses the class crashes the interpreter. Complete knowledge is only read, so it is safe to use.
    """
    with _one_at_a_time:
        made = msgspec.json.Decoder(type, dec_hook=strictly)
        _noted.add(type)
    return made


def convert_alone(value: Json, type: Any) -> Any:
    """Read a plain value as an author's type, by msgspec; only one thread at a time, like `decoder_of`.

    The type is not cached, because a program may make a new class for each value.
    """
    with _one_at_a_time:
        return msgspec.convert(value, type, str_keys=True)


def convert_strictly(value: Json, type: Any) -> Any:
    """Convert a plain value as the strict decoder would read its text; raises msgspec.ValidationError."""
    if type not in _noted:
        decoder_of(type)
    return msgspec.convert(value, type, dec_hook=strictly)


_repairs = _Repairs()
_LONGEST_STEP = 80
_one_at_a_time = threading.RLock()
_noted: set[Any] = set()


def _reader(node: Node, *, whole: bool = False) -> Reader:
    """A reader for this node; `whole` tries objects strictly first."""
    match node:
        case Anything():
            return _anything
        case Scalar():
            return _PLAIN.get(node) or functools.partial(_scalar, node)
        case OneWord():
            return functools.partial(_word, node)
        case ListOf(item, skip_invalid):
            return functools.partial(_valid_items if skip_invalid else _items, _reader(item, whole=True))
        case MapOf(value):
            return functools.partial(_map, _reader(value, whole=True))
        case Object(cls):
            return _whole_object_reader(cls) if whole else _object_reader(cls)
        case Tagged():
            return functools.partial(_tagged, _Variants(node, whole=whole))
        case Chosen(cls):
            return functools.partial(_chosen, cls)
        case AnyOf(options) if any(isinstance(option, Anything) for option in options):
            return _anything  # as msgspec does: the other options only document the type
        case AnyOf(options):
            inner = [_reader(option, whole=whole) for option in options if option != NULL]
            if len(inner) == 1 and NULL in options:
                return functools.partial(_nullable, inner[0])
            return functools.partial(_any_of, inner, _expected(node), NULL in options)
        case Named(_, inner):
            return _reader(inner, whole=whole)
        case Foreign(type):
            return functools.partial(_foreign, type)


# Plain values


def _anything(value: Json) -> Json:
    return value


def _string(value: Json) -> str:
    if type(value) is not str:
        raise Misfit(f"expected a string, got {kind(value)}")
    return value


def _boolean(value: Json) -> bool:
    if type(value) is not bool:
        raise Misfit(f"expected a boolean, got {kind(value)}")
    return value


_PLAIN: dict[Scalar, Reader] = {Scalar(str): _string, Scalar(bool): _boolean}


def _scalar(scalar: Scalar, value: Any) -> Any:
    wanted: Any = scalar.type
    if wanted is int and type(value) is float and value.is_integer():
        value = int(value)
    elif wanted is float and type(value) is int:
        value = _as_float(value)
    if type(value) is not wanted:
        raise Misfit(f"expected {_expected(scalar)}, got {kind(value)}")
    if scalar.least is not None and value < scalar.least:
        raise Misfit(f"expected a number from {scalar.least:,} up, got {_brief(value)}")
    if scalar.most is not None and value > scalar.most:
        raise Misfit(f"expected a number up to {scalar.most:,}, got {_brief(value)}")
    if scalar.shortest is not None and isinstance(value, str) and len(value) < scalar.shortest:
        raise Misfit("expected a string that is not empty" if scalar.shortest == 1 else "the string is too short")
    if scalar.longest is not None and isinstance(value, str) and len(value) > scalar.longest:
        raise Misfit(f"expected a string of at most {scalar.longest:,} characters, got {len(value):,}")
    return value


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Misfit("the number is out of range") from None


def _word(word: OneWord, value: Json) -> str:
    if not isinstance(value, str):
        raise Misfit(f"expected {_expected(word)}, got {kind(value)}")
    if value not in word.known and not word.open and not word.read_open:
        raise Misfit(f"expected {_expected(word)}, got {value[:60]!r}")
    return value


def _foreign(type: Any, value: Json) -> Any:
    try:
        return convert_strictly(value, type)
    except (msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        raise Misfit(f"{error!s:.200}") from None


# Lists and maps


def _items(read: Reader, value: Json) -> list[Any]:
    return [_step(read, item, f"[{index}]") for index, item in enumerate(_list(value))]


def _valid_items(read: Reader, value: Json) -> list[Any]:
    kept: list[Any] = []
    for item in _list(value):
        try:
            kept.append(read(item))
        except Misfit:
            continue
    return kept


def _map(read: Reader, value: Json) -> dict[str, Any]:
    return {key: _step(read, item, f".{key}") for key, item in _object(value).items()}


def _step(read: Reader, value: Json, step: str) -> Any:
    try:
        return read(value)
    except Misfit as misfit:
        misfit.steps.append(step)
        raise


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise Misfit(f"expected a list, got {kind(value)}")
    return value  # pyright: ignore[reportUnknownVariableType]


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise Misfit(f"expected an object, got {kind(value)}")
    return value  # pyright: ignore[reportUnknownVariableType]


# Objects


_ABSENT: Any = object()


@functools.cache
def _object_reader(cls: type[msgspec.Struct]) -> Reader:
    readers: list[tuple[Field, Reader]] = []

    def read(value: Json) -> Any:
        raw = _object(value)
        if not readers:  # made when first needed: a type may contain itself
            readers[:] = [(field, _reader(field.node)) for field in fields_of(cls)]  # in one step: threads share it
        raw = legacy.rewritten(cls, raw)
        values: dict[str, Any] = {}
        for field, read_field in readers:
            got = raw.get(field.wire, _ABSENT)
            if got is _ABSENT:
                if field.required:
                    raise Misfit("is missing", f".{field.wire}")
            elif got is None and Mark.DEFAULT_ON_NULL in field.marks:
                _put_default(field, values)
            else:
                try:
                    values[field.name] = read_field(got)
                except Misfit as misfit:
                    if Mark.DEFAULT_ON_ERROR not in field.marks:
                        misfit.steps.append(f".{field.wire}")
                        raise
                    _put_default(field, values)
        try:
            made = cls(**values)
        except ValueError as error:  # from __post_init__
            raise Misfit(str(error)) from None
        return with_unknown_members(made, _unknown_members(cls, raw)) if _repairs.keeping else made

    return read


def _unknown_members(cls: type[msgspec.Struct], raw: dict[str, Json]) -> dict[str, Json]:
    known = {field.wire for field in fields_of(cls)} | {cls.__struct_config__.tag_field}
    return {name: value for name, value in raw.items() if name not in known}


@functools.cache
def _whole_object_reader(cls: type[msgspec.Struct]) -> Reader:
    walk = _object_reader(cls)

    def read(value: Json) -> Any:
        try:
            made = convert_strictly(value, cls)
            if not _repairs.keeping or msgspec.to_builtins(made) == value:
                return made
        except (msgspec.ValidationError, ValueError, RecursionError):
            pass
        _repairs.one_more()
        return walk(value)

    return read


def _put_default(field: Field, values: dict[str, Any]) -> None:
    """Leave the field to its class's default; a required field has its type's empty value."""
    if field.default is None:
        match field.node:
            case ListOf():
                values[field.name] = []
            case MapOf():
                values[field.name] = {}
            case _:
                values[field.name] = None


# Unions


class _Variants:
    """A union by tag, with a reader for each of its variants."""

    def __init__(self, union: Tagged, *, whole: bool) -> None:
        self.union = union
        make = _whole_object_reader if whole else _object_reader
        self.classes = dict(union.variants)
        self.readers = {tag: make(cls) for tag, cls in union.variants}
        self.second = {
            tag: second
            for tag, cls in union.variants
            if (second := second_union(cls)) is not None and union.open and second.open
        }


def _tagged(variants: _Variants, value: Json) -> Any:
    raw, union = _object(value), variants.union
    tag = raw.get(union.tag_field, _ABSENT)
    if tag is _ABSENT and len(union.variants) == 1:
        tag = union.variants[0][0]
    if tag is _ABSENT:
        raise Misfit("is missing", f".{union.tag_field}")
    if not isinstance(tag, str):
        raise Misfit(f"expected a string, got {kind(tag)}", f".{union.tag_field}")
    if (read := variants.readers.get(tag)) is not None:
        return Unknown(tag, raw) if _has_newer_second_tag(variants.second.get(tag), raw) else read(raw)
    if (content := legacy.wrapped(tag, variants.classes, raw)) is not None:
        return variants.readers["content"](content)
    if union.open:
        return _unknown(union, tag, raw)
    known_tags = ", ".join(repr(known) for known, _ in union.variants)
    raise Misfit(f"expected one of {known_tags}, got {tag[:60]!r}", f".{union.tag_field}")


def _unknown(union: Tagged, tag: str, raw: dict[str, Json]) -> Unknown:
    _repairs.one_more()
    for name in union.every:
        if name not in raw:
            raise Misfit("is missing", f".{name}")
        if not isinstance(raw[name], str):
            raise Misfit(f"expected a string, got {kind(raw[name])}", f".{name}")
    return Unknown(tag, raw)


def _has_newer_second_tag(second: Tagged | None, raw: dict[str, Json]) -> bool:
    if second is None:
        return False
    tag = raw.get(second.tag_field)
    return isinstance(tag, str) and all(tag != known for known, _ in second.variants)


def _chosen(choice: type[Choice], value: Json) -> Any:
    variant = choice.__choose__(value)
    if variant is None:
        raise Misfit(f"expected {choice.__name__}, got {kind(value)}")
    try:
        return reader(variant)(value)
    except Misfit:
        if (unknown := choice.__unknown__(value)) is not None:
            return unknown
        raise


def _nullable(read: Reader, value: Json) -> Any:
    return None if value is None else read(value)


def _any_of(readers: list[Reader], expected: str, nullable: bool, value: Json) -> Any:
    if value is None and nullable:
        return None
    misfits: list[Misfit] = []
    for read in readers:
        try:
            return read(value)
        except Misfit as misfit:
            misfits.append(misfit)
    deepest = max(misfits, key=lambda misfit: len(misfit.steps))
    if deepest.steps or len(misfits) == 1:
        raise deepest  # one option was meant, and something in it is wrong
    raise Misfit(f"expected {expected}, got {kind(value)}")


# Types and values in the words of error texts

_KINDS: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
    list: "a list",
    dict: "an object",
}


def _brief(number: float) -> str:
    """A number, unless it has too many digits to read (or for Python to write)."""
    return str(number) if abs(number) < 10**24 else "a number of many digits"


def kind(value: Json) -> str:
    """The kind of a JSON value, for an error text: `a string`, `null`."""
    return _KINDS.get(type(value), type(value).__name__)


def _expected(node: Node) -> str:
    match node:
        case Scalar(type):
            return _KINDS[type]
        case OneWord(known, open=is_open):
            return "a string" if is_open else "one of " + ", ".join(repr(word) for word in known)
        case ListOf():
            return "a list"
        case MapOf() | Object() | Tagged() | Chosen():
            return "an object"
        case AnyOf(options):
            return " or ".join(dict.fromkeys(_expected(option) for option in options))
        case Named(_, inner):
            return _expected(inner)
        case Anything() | Foreign():
            return "a value"
