"""Models as sessions named them before config options had the category `model`. Page: adapters-type-map.

Many agents still offer their models this way, some in no other: `models` in the answers that open a session, and
`session/set_model`.
"""

from __future__ import annotations

from typing import NewType

from accord.schema.base import Model, Tolerant, ValidItems, unstable

ModelId = NewType("ModelId", str)


@unstable
class ModelInfo(Model):
    """A model that the agent offers for a session."""

    model_id: ModelId
    name: str
    description: Tolerant[str | None] = None


@unstable
class SessionModelState(Model):
    """The models of a session, and the current one."""

    current_model_id: ModelId
    available_models: Tolerant[ValidItems[ModelInfo]]
