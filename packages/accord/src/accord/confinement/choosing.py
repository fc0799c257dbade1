"""Chooses the way in which this machine can keep limits of processes."""

from __future__ import annotations

from accord.confinement import cgroups, scopes
from accord.confinement.confining import Confinement
from accord.confinement.containers import Container, Containers
from accord.confinement.limits import ProcessLimits
from accord.errors import AccordError


def confinement_for(limits: ProcessLimits, container: Container | None = None) -> Confinement:
    """The way in which this machine can keep the limits. Raises AccordError where there is none."""
    if container is not None:
        return Containers(container, limits)
    why_no_group = cgroups.unusable(limits)
    if not why_no_group:
        return cgroups.ControlGroups(limits)
    why_no_scope = scopes.unusable()
    if not why_no_scope:
        return scopes.Scopes(limits)
    raise AccordError(
        f"the limits of processes cannot be kept here: {why_no_group}; {why_no_scope}. "
        "Run the server as a systemd service with Delegate=yes, or its agents in containers (docs/hosts.md)"
    )
