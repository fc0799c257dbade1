"""Rules for Windows: command lines, environments, and jobs instead of process groups.

The rules are pure functions, which the tests call on every platform. Only `kernel32` calls the system, and it is
imported only on Windows.
"""
