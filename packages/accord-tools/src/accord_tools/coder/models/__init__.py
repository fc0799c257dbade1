"""Models: one interface, and the three forms in which providers offer them over HTTP."""
