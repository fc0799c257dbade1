"""Lets the tests of this folder share `strategies` and what it is made of."""
