"""`python -m accord.testing FILE NAME` plays a script as an agent over stdio."""

import sys

from accord.testing.scripted import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
