"""Small things that at least three rooms use."""
