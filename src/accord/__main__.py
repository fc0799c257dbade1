"""`python -m accord`: the command line, where its script is not on PATH."""

import sys

from accord.cli import main

if __name__ == "__main__":
    sys.exit(main())
