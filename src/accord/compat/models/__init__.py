"""The official Python SDK's models, made from our types of the protocol: mutable, checked when they are made.

A class of the official SDK and our type of the same thing have the same fields; the names differ, and a variant of a
union shows its tag as a field. So no schema is written twice: `names` says which of our types a model is made from,
`checks` reads the type's fields, and `model` gives the class that programs use.
"""

from accord.compat.models.invalid import ValidationError
from accord.compat.models.model import BaseModel, RootModel

__all__ = ["BaseModel", "RootModel", "ValidationError"]
