"""A proxy that gives every agent the rules of the house: the text of a file that you name.

accord conduct "python house_rules.py RULES.md" "gemini --acp"

The agent gets them with the first prompt of each session, or in its system prompt if it takes additions. The user does
not see them.
"""

import sys
from pathlib import Path

import accord

DEFAULT = "Answer in one sentence. Never delete a file without asking."

proxy = accord.Proxy("house-rules", version="1.0")
proxy.instructions(Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else DEFAULT)

if __name__ == "__main__":
    proxy.run()
