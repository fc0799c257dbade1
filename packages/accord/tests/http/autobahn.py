"""Runs Autobahn's test suite against our WebSocket frames: python -m tests.http.autobahn WSTEST...

WSTEST is the command of the suite's program `wstest`, which needs Python 2.7:

    pip install --target FOLDER autobahntestsuite && touch FOLDER/zope/__init__.py
    python -m tests.http.autobahn env PYTHONPATH=FOLDER python2.7 FOLDER/bin/wstest

It takes about three minutes. Cases 9.2, 9.4, 9.6 and 9.8 send binary messages, which we ignore, and 12 and 13 compress,
which we do not negotiate. The exit code is 1 if a case fails that may not differ.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.1.*", "9.3.*", "9.5.*", "9.7.*", "10.*"]

IGNORED = "binary messages are ignored, as the protocol demands"
LATEST = "of several pings in one read the latest is answered (RFC 6455, 5.5.3)"
LATER = "the messages of one read are delivered before its ping is answered"
EARLY = "invalid UTF-8 ends the connection when its message is complete, and not within a fragment"

DIFFERENCES = {
    **{f"1.2.{number}": IGNORED for number in range(1, 9)},
    "2.10": LATEST,
    "2.11": LATEST,
    **dict.fromkeys(("5.6", "5.7", "5.8", "5.19", "5.20"), LATER),
    **{f"6.4.{number}": EARLY for number in range(1, 5)},
}
PASSED = {"OK", "INFORMATIONAL"}


def differences(wstest):
    """The cases that did not pass, after a run of this command; and how many there were."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.http.autobahn_server"], stdout=subprocess.PIPE, text=True
        )
        try:
            url = f"ws://127.0.0.1:{server.stdout.readline().strip()}"
            spec = {"outdir": f"{folder}/reports", "servers": [{"agent": "accord", "url": url}], "cases": CASES}
            Path(folder, "spec.json").write_text(json.dumps(spec | {"exclude-cases": [], "exclude-agent-cases": {}}))
            subprocess.run([*wstest, "-m", "fuzzingclient", "-s", f"{folder}/spec.json"], check=True, cwd=folder)
        finally:
            server.kill()
            server.communicate()
        results = json.loads(Path(folder, "reports/index.json").read_text())["accord"]
    return {case for case, result in results.items() if result["behavior"] not in PASSED}, len(results)


def main(wstest):
    found, count = differences(wstest)
    for case in sorted(found - set(DIFFERENCES)):
        print(f"case {case} failed")
    for case in sorted(found & set(DIFFERENCES)):
        print(f"case {case} differs: {DIFFERENCES[case]}")
    print(f"{count - len(found)} of {count} cases passed")
    return 1 if found - set(DIFFERENCES) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
