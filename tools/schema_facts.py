"""Reads the protocol's JSON Schema and keeps its facts: names, types, requiredness, variants, methods, marks.

    python tools/schema_facts.py            build the pinned crate and rewrite packages/accord/tests/schema/*.json

The crate with the protocol's types in Rust is the source: the SDKs take it up weeks later. It has no schema files, so
a small program prints them (`crate_schemas`). No prose is kept. `schema_drift.py` compares our types with these facts,
and with newer sources.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

CRATE = "agent-client-protocol-schema"
VERSION = "1.20.0"
FACTS = Path(__file__).parent.parent / "packages" / "accord" / "tests" / "schema"
FEATURES = {"v1.stable": "", "v1.unstable": "unstable", "v2.stable": "v2", "v2.unstable": "unstable,v2"}

Schema = dict[str, Any]

MARKS = {
    "x-deserialize-default-on-error": "default-on-error",
    "x-deserialize-default-on-null": "default-on-null",
    "x-deserialize-skip-invalid-items": "skip-invalid-items",
}
ENVELOPES = {"ProtocolLevelNotification"} | {
    f"{side}{kind}" for side in ("Agent", "Client", "Proxy") for kind in ("Request", "Response", "Notification")
}


def facts(document: Schema) -> Schema:
    """What a schema file says, in a form that does not depend on how it is written down."""
    definitions: dict[str, Schema] = {
        name: _normal(definition) for name, definition in document["$defs"].items() if name not in ENVELOPES
    }
    reader = _Reader(definitions)
    return {
        "methods": _methods(definitions),
        "types": {name: reader.type(name) for name in sorted(definitions)},
    }


def _normal(schema: Any) -> Schema:
    """The same schema with one way to include another: `allOf`; a schema that is only `true` is an empty one."""
    if not isinstance(schema, dict):
        return {}
    normal = dict(cast("Schema", schema))
    for name in ("properties", "not", "items", "additionalProperties", "anyOf", "oneOf", "allOf"):
        inner: Any = normal.get(name)
        if inner is None or inner is False:
            continue
        if isinstance(inner, list):
            normal[name] = [_normal(variant) for variant in cast("list[Any]", inner)]
        elif name == "properties":
            normal[name] = {field: _normal(value) for field, value in inner.items()}
        else:
            normal[name] = _normal(inner)
    if "$ref" in normal and "properties" in normal:
        normal["allOf"] = [{"$ref": normal.pop("$ref")}]
    return normal


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
            key = f"{tag[0]}={tag[1]}" if tag else _reference(variant) or _untagged(variant)
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
                most = f"to {schema['maxLength']}" if "maxLength" in schema else "or more"
                return f"string of {schema['minLength']} {most}"
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


def _untagged(variant: Schema) -> str:
    """What stands for the name of a variant without a tag and a definition: the fields that it must have."""
    return f"with {', '.join(variant['required'])}" if variant.get("required") else "any"


def _says_something(default: Any) -> bool:
    if hasattr(default, "values"):
        return any(_says_something(value) for value in default.values())
    return default not in (None, False, [])


MANIFEST = """
[package]
name = "accord-schema"
version = "0.0.0"
edition = "2021"
[features]
unstable = ["agent-client-protocol-schema/unstable"]
v2 = ["agent-client-protocol-schema/unstable_protocol_v2"]
[dependencies]
agent-client-protocol-schema = "REQUIREMENT"
schemars = "1"
serde_json = "1"
"""

PROGRAM = """
#[cfg(not(feature = "v2"))]
use agent_client_protocol_schema::v1 as acp;
#[cfg(feature = "v2")]
use agent_client_protocol_schema::v2 as acp;

macro_rules! add {
    ($generator:ident, $($name:ident)*) => {{ $( $generator.subschema_for::<acp::$name>(); )* }};
}

fn main() {
    let mut generator = schemars::SchemaGenerator::default();
    add!(generator, ClientRequest AgentResponse ClientNotification AgentRequest ClientResponse AgentNotification);
    add!(generator, ProtocolLevelNotification RequestId Error);
    #[cfg(feature = "unstable")]
    add!(generator, ProxyRequest ProxyResponse ProxyNotification);
    println!("{}", serde_json::json!({ "$defs": generator.take_definitions(true) }));
}
"""


def crate_schemas(requirement: str, folder: Path) -> tuple[str, dict[str, Schema]]:
    """The version of the crate that fits, and its schemas, built in this folder with cargo."""
    (folder / "src").mkdir()
    (folder / "Cargo.toml").write_text(MANIFEST.replace("REQUIREMENT", requirement))
    (folder / "src" / "main.rs").write_text(PROGRAM)
    schemas = {name: json.loads(_run(folder, "run", "--features", said)) for name, said in FEATURES.items()}
    packages = json.loads(_run(folder, "metadata", "--format-version", "1"))["packages"]
    return next(package["version"] for package in packages if package["name"] == CRATE), schemas


def _run(folder: Path, *arguments: str) -> str:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "accord" / "schema-target"
    return subprocess.run(
        ["cargo", arguments[0], "--quiet", *arguments[1:]],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CARGO_TARGET_DIR": str(cache)},
    ).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _, schemas = crate_schemas(f"={VERSION}", Path(folder))
    for name, document in schemas.items():
        target = FACTS / f"{name}.json"
        target.write_text(json.dumps(facts(document), indent=1, ensure_ascii=False) + "\n")
        print(f"{target.name}: {len(document['$defs'])} definitions")


if __name__ == "__main__":
    sys.exit(main())
