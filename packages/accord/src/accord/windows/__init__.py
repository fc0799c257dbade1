"""What Windows does differently: command lines, environments, and jobs instead of process groups.

The rules are pure functions, which the tests call on every platform. Only `kernel32` calls the system, and only on
Windows does anything import it.
"""
