"""Images in terminals: PNG as pixels, the three protocols of terminals, and which of them a terminal speaks."""
