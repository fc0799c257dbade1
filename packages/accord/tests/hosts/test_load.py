"""Many connections through three hosts, one of which is killed: nothing is lost, out of order or taken twice."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]


async def test_a_host_that_is_killed_under_load_takes_nothing_with_it_that_was_seen():
    """A small `make load`. The other hosts are told of the death, so no lease can end before its time."""
    size = ["--sockets", "0", "--http2", "0", "--hosted", "60", "--streaming", "20", "--seconds", "2", "--rate", "10"]
    load = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.load", "--json", *size, "--lease", "30", "--announce"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        said, complaints = await load.communicate()
    finally:
        if load.returncode is None:
            load.kill()
            await load.wait()
    assert load.returncode == 0, f"{said.decode()}\n{complaints.decode()}"
    [run] = json.loads(said)
    assert run["hosts"] == 3
    assert run["checked"] > 0
    assert run["ended_with_host"] == run["on_killed_host"] > 0
    assert [run[what] for what in ("wrong", "ended_without_cause", "missing")] == [0, 0, 0]
