"""The tests of the package `accord-adapters`; see tests/__init__.py in the repository's root."""
