"""A fork of the fork server is to a test what a new interpreter is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server

pytestmark = pytest.mark.skipif(not fork_server.POSSIBLE, reason="forks need Linux")

FACTS = """
import json, os, signal, sys, warnings

warnings.warn("old", DeprecationWarning)
print(json.dumps({
    "names": [__name__, __file__, __builtins__ is sys.modules["builtins"], sys.modules["__main__"].__file__],
    "words": [sys.argv, sys.orig_argv, sys.path, sys.warnoptions],
    "filters": [[str(part) for part in entry] for entry in warnings.filters],
    "place": [os.getcwd(), dict(os.environ), os.getppid(), os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    "streams": [
        [s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.fileno(), s.isatty()]
        for s in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
    "shown": sorted(filter(None, open("/proc/self/environ").read().split("\\0"))),
    "read": sys.stdin.read(),
}))
"""

ENDINGS = {
    "at the end": "print('all')",
    "with a number": "raise SystemExit(7)",
    "with a text": "import sys; sys.exit('no more')",
    "with nothing": "raise SystemExit",
    "with an error": "def f():\n    1 / 0\nf()",
    "with a mistake": "x = = 1",
    "by Ctrl-C": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)",
    "by a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "with words at exit": "import atexit\natexit.register(print, 'last words')",
    "with a thread": "import threading\nthreading.Thread(target=lambda: print(input())).start()",
    "with a stream that is closed": "import sys\nprint('x')\nsys.stdout.close()",
    "with what nothing can take": "import os\nread, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\nprint('x')",
}


def run(script: Path, forked: bool, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    server = fork_server.server()
    if forked:
        server.use()
    try:
        command = [sys.executable, *options, str(script), "a", "--b=ä"]
        return subprocess.run(command, capture_output=True, text=True, check=False, input="words\n", **more)
    finally:
        server.disuse()


@pytest.mark.parametrize("options", [(), ("-u",), ("-P",), ("-W", "error::UserWarning", "-W", "ignore")])
def test_a_fork_sees_what_a_new_interpreter_sees(tmp_path: Path, options: tuple[str, ...]) -> None:
    (script := tmp_path / "facts.py").write_text(FACTS)
    environment = {**os.environ, "MINE": "1", "PYTHONWARNINGS": "always"}
    more = {"cwd": tmp_path, "env": environment, "start_new_session": True}
    fresh, forked = run(script, False, *options, **more), run(script, True, *options, **more)
    assert (fresh.returncode, forked.returncode) == (0, 0), (fresh.stderr, forked.stderr)
    assert json.loads(forked.stdout) == json.loads(fresh.stdout)
    assert forked.stderr == fresh.stderr


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_fork_ends_as_a_new_interpreter_ends(tmp_path: Path, ending: str) -> None:
    (script := tmp_path / "ending.py").write_text(ENDINGS[ending])
    fresh, forked = run(script, False), run(script, True)
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


def test_a_fork_warns_at_its_end_of_what_is_not_closed(tmp_path: Path) -> None:
    (script := tmp_path / "leaves.py").write_text("left = open(__file__)")
    for forked in (False, True):
        assert "ResourceWarning: unclosed file" in run(script, forked, "-W", "always").stderr


def test_a_fork_has_what_the_server_imported_and_random_numbers_of_its_own(tmp_path: Path) -> None:
    (script := tmp_path / "warm.py").write_text(
        "import random, sys\nprint('accord.agent' in sys.modules, random.random())"
    )
    (warm, first), (_, second) = (run(script, True).stdout.split() for _ in range(2))
    assert warm == "True"
    assert first != second
    assert run(script, False).stdout.startswith("False")


def test_a_script_whose_first_line_names_the_interpreter_is_forked(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_text(f"#!{sys.executable}\nimport sys\nprint('accord_tools.cli.run' in sys.modules, sys.argv)\n")
    script.chmod(0o755)
    fork_server.server().use()
    try:
        for words, environment in (([str(script)], None), (["agent"], {**os.environ, "PATH": str(tmp_path)})):
            done = subprocess.run([*words, "a"], stdout=subprocess.PIPE, text=True, check=True, env=environment)
            assert done.stdout == f"True {[str(script), 'a']}\n"
    finally:
        fork_server.server().disuse()


def test_an_agent_of_a_forked_command_is_its_child_and_a_fork_too(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import os, sys\nwarm = 'accord_tools.cli.run' in sys.modules\nimport accord\nagent = accord.Agent('a')\n"
        "@agent.on_prompt\nasync def reply(turn): await turn.say(f'{warm} {os.getppid()}')\nagent.run()"
    )
    fork_server.server().use()
    try:
        command = [sys.executable, "-m", "accord", "run", "Hi", "--", sys.executable, str(agent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.communicate()[0] == f"True {process.pid}\n"
    finally:
        fork_server.server().disuse()


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "pass"],
        ["-I", "a.py"],
        ["-X", "dev", "a.py"],
        ["-S", "-m", "accord"],
        ["-m", "pytest"],
        ["-u"],
        [],
        ["--version"],
        ["-W"],
        ["folder"],
    ],
)
def test_what_needs_a_new_interpreter_gets_one(words: list[str]) -> None:
    assert fork_server.Program.of([sys.executable, *words]) is None


def test_a_killed_fork_is_reaped_by_the_process_that_started_it(tmp_path: Path) -> None:
    (script := tmp_path / "waits.py").write_text("import signal\nprint('here', flush=True)\nsignal.pause()")
    fork_server.server().use()
    try:
        with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
            os.killpg(process.pid, signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
    finally:
        fork_server.server().disuse()
