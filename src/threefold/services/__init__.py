"""Named services: what a namespace can do, published once, by realms and apps alike, and called by its name."""

from threefold.services.bound import Introduction, Services
from threefold.services.calls import Caller, Operation, operation
from threefold.services.registry import Registry
from threefold.services.service import Service

__all__ = ["Caller", "Introduction", "Operation", "Registry", "Service", "Services", "operation"]
