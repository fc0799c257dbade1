"""The folder of a session: opens, lists and searches untrusted files, and asks git about them."""
