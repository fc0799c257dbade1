"""The tests of this folder start many programs."""

from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401
