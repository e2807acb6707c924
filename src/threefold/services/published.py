"""The registry of an open store: Threefold's realms, and the services that installed packages publish."""

from __future__ import annotations

from importlib.metadata import entry_points

from threefold.errors import ThreefoldError
from threefold.services.cnv import CnvService
from threefold.services.conv import ConvService
from threefold.services.doc import DocService
from threefold.services.everything import Everything
from threefold.services.mem import MemService
from threefold.services.realms import Of
from threefold.services.registry import Registry

GROUP = "threefold.services"
"""Entry points of this group name a class derived from `Service`, made without arguments, or a function that gives a
service."""


def registry(of: Of) -> Registry:
    """A registry with the realms and what is installed.

    Raises:
        InvalidInput: what a package publishes is no service, or its namespace is reserved. Conflict: it is taken.
    """
    made = Registry()
    for service in (Everything(of, made), ConvService(of), MemService(of), CnvService(of), DocService(of)):
        made.publish(service, own=True)
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            made.publish(entry.load()())
        except ThreefoldError as error:
            raise type(error)(f"the service {entry.name!r} that is installed as {entry.value}: {error}") from None
    return made
