"""`SchemaFile`: a JSON Schema in a file, which the answer of `accord run --schema FILE` must fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accord.installation import missing_extra
from accord_tools.cli.exit_codes import WrongUsage


class SchemaFile:
    """A type for `session.prompt(output=...)` that a file describes, with the two methods that models of pydantic have.

    Raises WrongUsage for a file that cannot be read or is no JSON Schema.
    """

    def __init__(self, path: str) -> None:
        try:
            from jsonschema import SchemaError, validators
        except ModuleNotFoundError as missing:
            raise missing_extra("cli", "--schema") from missing
        self.__name__ = path
        try:
            self._schema: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            kind: Any = validators.validator_for(self._schema)
            kind.check_schema(self._schema)
        except OSError as error:
            raise WrongUsage(f"--schema {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise WrongUsage(f"--schema {path}: this is not JSON: {error}") from None
        except SchemaError as error:
            raise WrongUsage(f"--schema {path}: this is not a JSON Schema: {error.message}") from None
        self._validator: Any = kind(self._schema)

    def model_json_schema(self) -> Any:
        """The schema."""
        return self._schema

    def model_validate_json(self, text: str) -> Any:
        """The value in this JSON; raises ValueError, with the path, if it does not fit."""
        value = json.loads(text)
        wrong = sorted(self._validator.iter_errors(value), key=lambda it: len(it.path))
        if wrong:
            raise ValueError("; ".join(f"{it.message} - at `{it.json_path}`" for it in wrong[:5]))
        return value
