"""`accord schema`: prints the JSON Schema of our types."""

from __future__ import annotations

import argparse
import json

from accord_tools.cli import printing


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", type=int, choices=[1, 2], default=1, help="the protocol's version (default: 1)")
    parser.add_argument("--unstable", action="store_true", help="include proposed types and methods")


def run(options: argparse.Namespace) -> int:
    from accord.schema.describe import json_schema

    printing.say(json.dumps(json_schema(options.version, unstable=options.unstable), indent=2, ensure_ascii=False))
    return 0
