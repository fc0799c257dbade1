"""The tests of the package `accord`; see tests/__init__.py in the repository's root."""
