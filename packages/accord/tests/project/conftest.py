"""What the tests of a project's folder share."""

from tests.project.hostile_folder import hostile

__all__ = ["hostile"]
