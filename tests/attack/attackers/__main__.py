"""Run one attack, and say what came of it: one JSON object on standard output."""

from __future__ import annotations

import json
import sys

from tests.attack.attackers import Attacker
from tests.attack.attackers.families import ATTACKS

if __name__ == "__main__":
    kind, seed, seconds, targets = sys.argv[1:]
    attacker = Attacker(int(seed), float(seconds), json.loads(targets))
    ATTACKS[kind](attacker)
    print(json.dumps({"tries": attacker.tries, "sent": attacker.sent, "wrong": attacker.complaints}))
