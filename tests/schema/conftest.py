"""Lets the tests of this folder share `strategies` and what it is made of."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
