"""The tests of the package `accord-tools`; see tests/__init__.py in the repository's root."""
