"""Reads the protocol's official JSON Schema and keeps its facts: names, types, requiredness, variants, methods, marks.

    python tools/schema_facts.py            fetch the pinned npm package and rewrite packages/accord/tests/schema/*.json
    python tools/schema_facts.py FOLDER     the same from an unpacked package

No prose of the schema is kept. `test_drift.py` in the same folder reads our own types' JSON Schema with these functions
and compares, so a new release of the schema is: change the pin, run this, and mend what the test then names.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "@agentclientprotocol/sdk"
VERSION = "2.4.0"
FACTS = Path(__file__).parent.parent / "packages" / "accord" / "tests" / "schema"
FILES = {
    "v1.stable": "schema/v1/schema.json",
    "v1.unstable": "schema/v1/schema.unstable.json",
    "v2.stable": "schema/v2/schema.json",
    "v2.unstable": "schema/v2/schema.unstable.json",
}

Schema = dict[str, Any]

MARKS = {
    "x-deserialize-default-on-error": "default-on-error",
    "x-deserialize-default-on-null": "default-on-null",
    "x-deserialize-skip-invalid-items": "skip-invalid-items",
}
ENVELOPES = {
    f"{side}{kind}" for side in ("Agent", "Client", "Proxy") for kind in ("Request", "Response", "Notification")
}


def facts(document: Schema) -> Schema:
    """What a schema file says, in a form that does not depend on how it is written down."""
    definitions: dict[str, Schema] = {
        name: definition for name, definition in document["$defs"].items() if name not in ENVELOPES
    }
    reader = _Reader(definitions)
    return {
        "methods": _methods(definitions),
        "types": {name: reader.type(name) for name in sorted(definitions)},
    }


def _methods(definitions: dict[str, Schema]) -> dict[str, Schema]:
    methods: dict[str, Schema] = {}
    for name in sorted(definitions):
        if "x-method" in definitions[name]:
            role = next(role for role in ("Request", "Response", "Notification") if name.endswith(role))
            kind = "notification" if role == "Notification" else "request"
            key = f"{definitions[name]['x-method']} ({kind})"
            methods.setdefault(key, {})[role.lower()] = name
            methods[key]["side"] = definitions[name]["x-side"]
    return dict(sorted(methods.items()))


class _Reader:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.definitions = definitions

    def type(self, name: str) -> Any:
        return self.describe(self.definitions[name])

    def describe(self, schema: Schema) -> Any:
        """A definition: an object's fields, a union's variants, or an expression."""
        if (reference := _reference(schema)) is not None and not schema.get("properties"):
            return self.describe(self.definitions[reference])
        variants = _variants(schema)
        if schema.get("properties") and not variants:
            return {"fields": self.fields(schema)}
        if any("properties" in variant or _reference(variant) for variant in variants):
            return self.union(schema, variants)
        return self.expression(schema) if schema.get("type") != "object" else {"fields": {}}

    def fields(self, schema: Schema) -> dict[str, str]:
        """Every field with its type, requiredness, default and marks, those of the schemas it includes among them."""
        found: dict[str, str] = {}
        for included in schema.get("allOf", []):
            found.update(self.fields(self.definitions[str(_reference({"allOf": [included]}))]))
        required = schema.get("required", [])
        for name, value in schema.get("properties", {}).items():
            if value.get("const") is None:
                found[name] = self.field(value, required=name in required)
        return dict(sorted(found.items()))

    def field(self, schema: Schema, *, required: bool) -> str:
        words = [self.expression(schema), "required" if required else "optional"]
        words += sorted(word for mark, word in MARKS.items() if schema.get(mark))
        if _says_something(default := schema.get("default")):
            words.append(f"default {json.dumps(default)}")
        return ", ".join(words)

    def union(self, schema: Schema, variants: list[Schema]) -> Any:
        own = self.fields({"properties": schema.get("properties", {}), "required": schema.get("required", [])})
        union: dict[str, Any] = {"variants": {}}
        for variant in variants:
            if "not" in variant:
                union["open"] = True
                continue
            tag = _tag(variant)
            key = f"{tag[0]}={tag[1]}" if tag else str(variant.get("title") or _reference(variant))
            key = key if tag else str(_reference(variant) or key)
            inner = self.fields(variant) if tag or not _reference(variant) else self.flat(str(_reference(variant)))
            union["variants"][key] = {**own, **inner} if isinstance(inner, dict) else inner
        union["variants"] = dict(sorted(union["variants"].items()))
        return union

    def flat(self, name: str) -> Any:
        described: Any = self.type(name)
        return described.get("fields", described)

    def expression(self, schema: Schema) -> str:
        """A type in a word or two: `SessionId`, `[PlanEntry]|null`, `integer:uint32`."""
        if (reference := _reference(schema)) is not None:
            return reference
        if "const" in schema:
            return json.dumps(schema["const"])
        if variants := _variants(schema):
            words = [self.expression(variant) for variant in variants]
            return "|".join(sorted(dict.fromkeys(words), key=lambda word: (word == "null", word)))
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return "|".join(sorted((self.plain(kind, schema) for kind in kinds), key=lambda word: (word == "null", word)))

    def plain(self, kind: str, schema: Schema) -> str:
        match kind:
            case "array":
                return f"[{self.expression(schema['items'])}]" if "items" in schema else "[any]"
            case "object":
                values: Any = schema.get("additionalProperties")
                return "{any}" if values in (None, True, False) else f"{{{self.expression(values)}}}"
            case "integer":
                bound = f">={schema['minimum']}" if schema.get("minimum") else ""
                return f"integer:{schema.get('format', '')}{bound}"
            case "number" if "minimum" in schema or "maximum" in schema:
                return f"number {schema.get('minimum', '')}..{schema.get('maximum', '')}"
            case "string" if "minLength" in schema:
                return f"string of {schema['minLength']} or more"
            case _:
                return kind


def _reference(schema: Schema) -> str | None:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    included = schema.get("allOf", [])
    return _reference(included[0]) if len(included) == 1 and not schema.get("properties") else None


def _variants(schema: Schema) -> list[Schema]:
    variants: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or []
    return variants


def _tag(variant: Schema) -> tuple[str, str] | None:
    for name, value in variant.get("properties", {}).items():
        if isinstance(value.get("const"), str):
            return name, value["const"]
    return None


def _says_something(default: Any) -> bool:
    if hasattr(default, "values"):
        return any(_says_something(value) for value in default.values())
    return default not in (None, False, [])


def fetch(folder: Path) -> Path:
    """The pinned package, unpacked into this folder."""
    subprocess.run(
        ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = Path(sys.argv[1]) if len(sys.argv) > 1 else fetch(Path(folder))
        found = json.loads((package / "package.json").read_text())["version"]
        if found != VERSION:
            sys.exit(f"this is {PACKAGE} {found}; the pin says {VERSION}: change VERSION here to take it")
        for name, path in FILES.items():
            document = json.loads((package / path).read_text())
            target = FACTS / f"{name}.json"
            target.write_text(json.dumps(facts(document), indent=1, ensure_ascii=False) + "\n")
            print(f"{target.name}: {len(document['$defs'])} definitions")


if __name__ == "__main__":
    main()
