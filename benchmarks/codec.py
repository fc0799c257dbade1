"""`python -m benchmarks.codec`: our codec and the official Python SDK's, in turn, on the same payloads."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.build import Unavailable, build
from benchmarks.peers import PYTHON, fill

ROUNDS = 5
WORKER = str(Path(__file__).with_name("codec_worker.py"))


def run(command: list[str]) -> dict[str, dict[str, float]]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line["payload"]: line for line in map(json.loads, done.stdout.splitlines())}


def main() -> int:
    try:
        built = build(PYTHON, print)
    except Unavailable as error:
        print(f"skipping {error}")
        return 0
    theirs_command = fill(("{venv}", WORKER, "theirs"), built.folder)
    rounds = [(run([sys.executable, WORKER, "ours"]), run(theirs_command)) for _ in range(ROUNDS)]
    print(f"{'payload':32} {'way':7} {'ours µs':>9} {'theirs µs':>10} {'times as fast':>14}")
    for payload in rounds[0][0]:
        for way in ("decode", "encode"):
            ours = statistics.median(mine[payload][way] for mine, _ in rounds)
            theirs = statistics.median(other[payload][way] for _, other in rounds)
            ratio = statistics.median(other[payload][way] / mine[payload][way] for mine, other in rounds)
            print(f"{payload:32} {way:7} {ours:9.2f} {theirs:10.2f} {ratio:14.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
