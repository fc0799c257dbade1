"""FILE of `accord trace`: a path, a part of a kept trace's name, or nothing for the newest kept trace."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accord import AccordError, DecodeError
from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord_tools.tap import KeptTrace

HELP = "a file, or a part of the name of a kept trace (default: the newest kept trace)"


def find(given: str | None) -> str:
    """The path of the trace that the user means."""
    from accord_tools.tap import kept_traces, traces_folder

    if given is not None and (given == "-" or Path(given).is_file()):
        return given
    kept = kept_traces()
    if given is None:
        if not kept:
            raise WrongUsage(f"no traces in {traces_folder()}; name a file, or record one: accord trace -- COMMAND...")
        return kept[0].path
    named = [trace.path for trace in kept if given in Path(trace.path).name]
    if not named:
        raise WrongUsage(f"{given} is neither a file nor a part of the name of a kept trace; see accord trace list")
    if len(named) > 1:
        names = ", ".join(Path(path).name for path in named[:5])
        raise WrongUsage(f"{given} is a part of {len(named)} names: {names}")
    return named[0]


def live(path: str) -> KeptTrace | None:
    """The trace that is being written to this file; None if none is."""
    from accord_tools.tap import kept_traces

    real = str(Path(path).resolve())
    return next((trace for trace in kept_traces() if trace.path == real and trace.live is not None), None)


@contextmanager
def readable(path: str) -> Generator[None]:
    """Report a file that cannot be read, or is no trace, as wrong usage or as damage."""
    try:
        yield
    except DecodeError as error:
        raise AccordError(f"{path}: {error}") from error
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise WrongUsage(f"cannot read {path}: {error.strerror}") from error
