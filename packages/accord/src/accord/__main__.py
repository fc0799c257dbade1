"""`python -m accord`: the command line, where its script is not on PATH."""

import sys

TOOLS = "accord_tools"
"""The package of the command line, which may not be installed."""


def main() -> int:
    """Run the command line; if it is not installed, say how to install it."""
    try:
        from accord_tools.cli import main as command_line
    except ModuleNotFoundError as error:
        if error.name != TOOLS:
            raise
        from accord.installation import missing_package

        print(f"accord: {missing_package('accord-tools', 'the command line')}", file=sys.stderr)
        return 1
    return command_line()


if __name__ == "__main__":
    sys.exit(main())
