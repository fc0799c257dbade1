"""Feeds the codec what a coverage-guided fuzzer makes up, until it finds an exception that should not be.

    python tools/fuzz_codec.py [SECONDS] [OPTION...]        for a minute, or for that long; options go to libFuzzer

What may come of any bytes: a value, or a DecodeError; a value that is written again is read as the same. The first two
bytes of an input choose which message it is read as, the rest is the text. It begins with the texts of
`packages/accord/tests/schema/corpus`. An input that broke something belongs there, and as an example in
`test_codec.py` beside it.

The fuzzer is atheris, which no other part needs: without it this says so and ends well.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent.parent / "packages" / "accord" / "tests" / "schema" / "corpus"
VERSIONS = (1, 2)
SECONDS = 60


def carried() -> list[tuple[str, str, Any]]:
    """What each method of each version carries: the corpus that has texts of it, its name there, and its type."""
    from accord.schema.methods import methods

    found: list[tuple[str, str, Any]] = []
    for version in VERSIONS:
        for row in methods(version):
            found.append((f"v{version}.json", f"{row.name} {row.kind} params", row.params))
            if row.kind == "request":
                found.append((f"v{version}.json", f"{row.name} {row.kind} result", row.result))
    return found


def seeds(types: list[tuple[str, str, Any]]) -> Iterator[bytes]:
    for index, (file, name, _) in enumerate(types):
        for value in json.loads((CORPUS / file).read_text("utf-8"))[name]:
            yield index.to_bytes(2, "big") + json.dumps(value, ensure_ascii=False).encode()


def dictionary(types: list[tuple[str, str, Any]]) -> Iterator[str]:
    """Words worth trying: the fragments, and every key and word that there is in the corpus."""
    words = [fragment.encode("latin-1") for fragment in json.loads((CORPUS / "fragments.json").read_text("utf-8"))]
    for seed in seeds(types):
        words += [b'"%s"' % word for word in seed[2:].split(b'"')[1::2] if word]
    for word in dict.fromkeys(words):
        yield '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"'


def checker(types: list[tuple[str, str, Any]]) -> Callable[[bytes], None]:
    from accord.errors import DecodeError, EncodeError
    from accord.schema.codec import decode, encode

    def check(data: bytes) -> None:
        hint = types[int.from_bytes(data[:2], "big") % len(types)][2]
        try:
            value = decode(data[2:], hint)
            written = encode(value)
        except (DecodeError, EncodeError):
            return
        if decode(written, hint) != value:
            raise AssertionError(f"{hint}: {value!r} was written as {written!r}, which is read as something else")

    return check


def main() -> None:
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed, so nothing was tried: pip install atheris")
        return
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["accord.schema"]):
        types = carried()
        check = checker(types)
    seconds = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].isdigit() else str(SECONDS)
    options = sys.argv[1:] if seconds not in sys.argv[1:2] else sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        inputs, words = Path(folder, "inputs"), Path(folder, "words")
        inputs.mkdir()
        for number, seed in enumerate(seeds(types)):
            (inputs / f"{number:04}").write_bytes(seed)
        words.write_text("\n".join(dictionary(types)) + "\n")
        atheris.Setup(
            [sys.argv[0], f"-max_total_time={seconds}", f"-dict={words}", "-max_len=4096", *options, str(inputs)],
            check,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
