"""`accord demo` with its sessions in a file, so that they are there again when it is started again.

demo_agent.py STORE [--login]
"""

import sys

from accord import SqliteStore
from accord.demo import demo_agent

if __name__ == "__main__":
    agent = demo_agent(login="--login" in sys.argv, pace=0.01)
    agent.store = SqliteStore(sys.argv[1])
    agent.run()
