"""Builds the peers outside the checkout, once for each state of their sources."""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from benchmarks.peers import HERE, Peer, Tokens, fill

if sys.platform != "win32":
    import fcntl

STAMP = "built"
STEP_SECONDS = 1800
IMPATIENCE = {"npm_config_fetch_retries": "1"}
"""Where there is no network, npm would try for minutes, which is longer than a test may take."""


class Unavailable(Exception):
    """A peer cannot be built here; the text says what to do about it."""


@dataclass(frozen=True)
class Built:
    """A peer that is ready to run."""

    peer: Peer
    folder: Path


def cache_folder() -> Path:
    """Where the peers live: the user's cache, never the checkout."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "accord" / "peers"


def fingerprint(peer: Peer) -> str:
    """Changes with everything that the outcome of a build depends on."""
    # A virtual environment is of use to the interpreter that made it only.
    ours = platform.python_version() if any("{python}" in step for step in peer.steps) else ""
    digest = hashlib.sha256(repr((peer.steps, platform.system(), platform.machine(), ours)).encode())
    for source, name in sorted(peer.files.items()):
        digest.update(f"{source}:{name}:".encode())
        digest.update((HERE / source).read_bytes())
    return digest.hexdigest()


def build(peer: Peer, say: Callable[[str], None]) -> Built:
    """Build a peer unless that was done before."""
    if missing := [source for source in peer.files if not (HERE / source).is_file()]:
        raise Unavailable(f"{peer.name}: there is no benchmarks/{missing[0]}")
    if absent := [tool for tool in peer.tools if not shutil.which(tool)]:
        raise Unavailable(f"{peer.name}: no {absent[0]} here, install {peer.install}")
    folder = cache_folder() / f"{peer.name}-{peer.version}"
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        for step in peer.ahead:
            with (folder / "ahead.log").open("wb") as log:
                if not run_step(fill(step, folder), folder, log.fileno()):
                    raise Unavailable(f"{peer.name}: `{named(step)}` failed, see {log.name}")
        if peer.steps:
            make(peer, folder, say)
    return Built(peer, folder)


@contextmanager
def alone_in(folder: Path) -> Generator[None]:
    """Wait for any other process that builds here: a test run has several. (Not on Windows.)"""
    with (folder / "lock").open("w") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(peer: Peer, folder: Path, say: Callable[[str], None]) -> None:
    """Take the steps, unless they were taken for just this."""
    stamp = folder / STAMP
    wanted = fingerprint(peer)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    say(f"building {peer.name} ({peer.package} {peer.version}) in {folder}")
    stamp.unlink(missing_ok=True)
    for source, name in peer.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / source, target)
    with (folder / "build.log").open("wb") as log:
        for step in peer.steps:
            if not run_step(fill(step, folder), folder, log.fileno()):
                needs = f"{peer.install}, and a network, once" if peer.install else "a network, once"
                raise Unavailable(f"{peer.name}: `{named(step)}` failed, see {log.name}; it needs {needs}")
    stamp.write_text(wanted)


def named(step: Tokens) -> str:
    """A step in a line to be read, without the places of this machine."""
    places = {"{python}": "python", "{venv}": "python", "{build}": "."}
    return " ".join(reduce(lambda text, place: text.replace(*place), places.items(), token) for token in step)


def run_step(command: list[str], folder: Path, log: int) -> bool:
    """Whether a build command succeeded."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**IMPATIENCE, **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=STEP_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def build_all(peers: list[Peer], say: Callable[[str], None]) -> dict[str, Built]:
    """Every peer that can be had; a line for each that cannot."""
    built: dict[str, Built] = {}
    for peer in peers:
        try:
            built[peer.name] = build(peer, say)
        except Unavailable as error:
            say(f"skipping {error}")
    return built


if __name__ == "__main__":
    from benchmarks.peers import PEERS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.build", description="Build the peers and stop.")
    parser.add_argument("peer", nargs="*", help=f"which ones (without any, all): {', '.join(PEERS)}")
    chosen = parser.parse_args().peer or list(PEERS)
    if unknown := [name for name in chosen if name not in PEERS]:
        parser.error(f"no peer is called {unknown[0]}; there are {', '.join(PEERS)}")
    ready = build_all([PEERS[name] for name in chosen], lambda line: print(line, file=sys.stderr))
    sys.exit(len(ready) < len(chosen))
