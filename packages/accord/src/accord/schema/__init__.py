"""The protocol's words: typed values, the codec that reads and writes them, and the table of methods."""
