"""Images in terminals: their pixels, the three protocols of terminals, and which of them a terminal supports."""
