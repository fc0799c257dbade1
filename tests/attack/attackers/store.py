"""Kills processes that use the store of the server. What they had been told is kept has to be there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time

from tests.attack.attackers import Attacker, attack
from tests.attack.attackers.wire import cut_off

WORKER = (sys.executable, "-m", "tests.attack.store_worker")
CHECKING = 60.0
"""Seconds that a check may take on a busy machine."""


@attack
def killed_writers(attacker: Attacker) -> None:
    """Two processes write to the store; one after the other is killed, and its session is loaded by a third."""
    store = attacker.targets["store"]
    while attacker.going:
        writers = [
            subprocess.Popen([*WORKER, "work", store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            said = [writer.stdout.readline().split()]
            time.sleep(attacker.random.random())
            writer.kill()
            rest, errors = writer.communicate()
            said += [line.split() for line in rest.splitlines()]
            if errors:
                attacker.wrong(f"a process that writes to the store: {errors[-1500:]}")
            attacker.made()
            if said[-1]:
                session, turn = said[-1]
                verify(attacker, store, session, int(turn) + 1)


def verify(attacker: Attacker, store: str, session: str, complete: int) -> None:
    checked = subprocess.run(
        [*WORKER, "check", store, session, str(complete)], capture_output=True, text=True, timeout=CHECKING, check=False
    )
    if checked.returncode:
        attacker.wrong(f"after a process was killed: {checked.stderr[-450:]}")


@attack
def locked_store(attacker: Attacker) -> None:
    """Keeps the file locked for a moment, again and again: writers wait, and event loops do not."""
    while attacker.going:
        with cut_off():
            connection = sqlite3.connect(attacker.targets["store"], isolation_level=None, timeout=5.0)
            try:
                connection.execute("BEGIN IMMEDIATE")
                time.sleep(attacker.random.random() * 0.3)
                connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                if "locked" not in str(error):
                    attacker.wrong(f"the store: {error}")
            finally:
                connection.close()
        attacker.made()
        time.sleep(0.05)
