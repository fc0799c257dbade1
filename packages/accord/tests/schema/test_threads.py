"""The first messages of a program may be read in several threads at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PROCESSES = 20
AT_ONCE = 4

STATES = """
import sys, threading
from msgspec import Struct, defstruct, field

sys.setswitchinterval(1e-6)
from accord.schema.tolerant import convert_alone

kinds = [Struct]
for depth in range(100):
    inner = kinds[-1]
    fields = [("name", str), ("inner", inner | None, None), ("some", list[inner], field(default_factory=list))]
    kinds.append(defstruct(f"State{depth}", fields[: 1 if depth == 0 else None]))
kinds = kinds[:0:-1]
start, said = threading.Barrier(16), []

def read():
    start.wait()
    said.append([repr(convert_alone({"name": "Ada"}, kind)) for kind in kinds])

threads = [threading.Thread(target=read) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(said) == 16 and all(found == said[0] for found in said)
"""

READ = """
import sys, threading

sys.setswitchinterval(1e-6)
from accord.schema.codec import decode
from accord.schema.methods import methods

rows = [row for version in (1, 2) for row in methods(version)]
hints = [row.params for row in rows] + [row.result for row in rows if row.kind == "request"]
text = b'''{"sessionId": "s", "prompt": [{"type": "text", "text": "x", "annotations": 5}],
"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}'''
start, said = threading.Barrier(16), []

def read():
    start.wait()
    found = []
    for hint in hints:
        try:
            found.append(decode(text, hint))
        except ValueError as error:
            found.append(str(error))
    said.append(found)

threads = [threading.Thread(target=read) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(said) == 16 and all(found == said[0] for found in said)
"""


def outcomes(python, program=READ):
    """How often a fresh process that reads in sixteen threads ended in which way."""
    codes = []
    for _ in range(PROCESSES // AT_ONCE):
        started = [
            subprocess.Popen([python, "-c", program], env=os.environ | {"PYTHONPATH": str(SOURCE)})
            for _ in range(AT_ONCE)
        ]
        codes += [process.wait() for process in started]
    return codes


def test_types_that_several_threads_use_for_the_first_time_are_made_once():
    assert outcomes(sys.executable) == [0] * PROCESSES


def test_classes_of_authors_that_several_threads_use_for_the_first_time_are_made_once():
    assert outcomes(sys.executable, STATES) == [0] * PROCESSES


def test_types_are_made_once_without_a_global_lock_too():
    names = ("python3.14t", "python3.13t")
    python = next((path for name in names if (path := shutil.which(name))), None)
    if python is None:
        pytest.skip("no free-threaded Python is installed (python3.14t or python3.13t)")
    if subprocess.run([python, "-c", "import msgspec"], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has no msgspec")
    assert outcomes(python) == [0] * PROCESSES
