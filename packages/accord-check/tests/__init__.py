"""The tests of the package `accord-check`; see tests/__init__.py in the repository's root."""
