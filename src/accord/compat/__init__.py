"""Other libraries' names on our engine, for programs that move to Accord."""
