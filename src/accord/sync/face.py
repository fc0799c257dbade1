"""`Face`: what a thread holds of an object that lives in the event loop of a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from accord.engine.handlers import MessageT, Registrar
from accord.engine.interceptors import Registration
from accord.sync.portal import Portal

HeldT = TypeVar("HeldT")
T = TypeVar("T")
FaceT = TypeVar("FaceT", bound="Face[Any]")


class Face(Generic[HeldT]):
    """An object of the loop and the way to it; its subclasses have the members of the object's class."""

    def __init__(self, portal: Portal, held: HeldT, session: str | None = None) -> None:
        self._portal = portal
        self._held = held
        self._session = session
        """The session whose questions a thread answers while it waits here."""

    def __repr__(self) -> str:
        return f"accord.sync.{self._held!r}"


def face_of(portal: Portal, cls: Callable[[Portal, HeldT, str], FaceT], held: HeldT, session: str) -> FaceT:
    """The face of this object; as long as it is used, the same one for the same object."""
    with portal.making:
        face: FaceT = portal.faces.setdefault(id(held), cls(portal, held, session))
    return face


def registrar_of(portal: Portal, held: Registrar[MessageT]) -> Registrar[MessageT]:
    """Registers the handler in the loop."""
    register: Callable[[Callable[..., Any]], object] = cast("Any", held)
    return Registrar(lambda handler: portal.do(lambda: register(handler)))


def registration_of(portal: Portal, held: Registration[MessageT]) -> Registration[MessageT]:
    """Registers the handler in the loop, and removes it there."""
    register: Callable[[Callable[..., Any]], object] = cast("Any", held)

    def registered(handler: Callable[..., Any]) -> Callable[[], None]:
        portal.do(lambda: register(handler))
        return lambda: portal.read(held.remove)

    return Registration(registered)
