"""Runs cells in a Jupyter kernel and prints their outputs as JSON.

python run_cells.py FILE        FILE has the cells as a JSON list

A cell that begins with `# interrupt after FILE LINE` is interrupted when FILE has that line, as by the stop button.
A question of a cell (`input`) is answered with "y".
"""

import json
import sys
import threading
import time
from pathlib import Path

from jupyter_client.manager import start_new_kernel

MOST = 60.0


def outputs_of(client, cell):
    found = []

    def note(message):
        content = message["content"]
        if message["msg_type"] == "stream":
            found.append({"text": content["text"]})
        elif message["msg_type"] == "execute_result":
            found.append(content["data"])
        elif message["msg_type"] == "error":
            found.append({"error": content["ename"]})

    options = {"output_hook": note, "stdin_hook": lambda _: client.input("y"), "allow_stdin": True}
    client.execute_interactive(cell, timeout=MOST, **options)
    return found


def interrupt_after(manager, file, line):
    deadline = time.monotonic() + MOST
    while time.monotonic() < deadline and not (file.exists() and line in file.read_text().splitlines()):
        time.sleep(0.01)
    wait_for_wait(manager.provisioner.process.pid)
    manager.interrupt_kernel()


def wait_for_wait(pid):
    """Until the main thread of the kernel waits: an interrupt before that would stop the cell, and not the turn."""
    status = Path(f"/proc/{pid}/task/{pid}/status")
    seen, times = None, 0
    while status.exists() and times < 5:
        switches = next(line for line in status.read_text().splitlines() if line.startswith("voluntary"))
        seen, times = switches, times + 1 if switches == seen else 0
        time.sleep(0.02)


def main():
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=MOST)
    outputs = []
    try:
        for cell in json.loads(Path(sys.argv[1]).read_text()):
            first = cell.partition("\n")[0]
            if first.startswith("# interrupt after "):
                file, _, line = first.removeprefix("# interrupt after ").partition(" ")
                threading.Thread(target=interrupt_after, args=(manager, Path(file), line), daemon=True).start()
            outputs.append(outputs_of(client, cell))
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    print(json.dumps(outputs))


if __name__ == "__main__":
    main()
