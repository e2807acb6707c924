"""References of every namespace through one door: parse, find the owner, ask it as the one who calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from threefold.errors import Forbidden, ThreefoldError
from threefold.model.ref import parse_ref
from threefold.model.resolved import Resolved, Shown, Standing
from threefold.services.calls import Caller
from threefold.services.registry import Registry
from threefold.services.service import Ref, namespace_of


class ScopedObjects:
    """`Objects` of one caller over the services that are published."""

    def __init__(self, registry: Registry, caller: Caller) -> None:
        self._registry, self._caller = registry, caller

    def resolve(self, ref: str) -> Resolved:
        """See `Objects.resolve`."""
        parsed = parse_ref(ref)
        return self._registry.find(namespace_of(parsed)).resolve(self._caller, parsed)

    def describe(self, refs: Sequence[str], size: int = 300) -> Mapping[str, Shown]:
        """See `Objects.describe`. Each owner is asked once."""
        parsed = {ref: parse_ref(ref) for ref in dict.fromkeys(refs)}
        by_owner: dict[str, list[Ref]] = {}
        for each in parsed.values():
            by_owner.setdefault(namespace_of(each), []).append(each)
        shown = {ref: each for owner, named in by_owner.items() for ref, each in self._ask(owner, named, size).items()}
        return {ref: shown[str(each)] for ref, each in parsed.items()}

    def _ask(self, owner: str, refs: Sequence[Ref], size: int) -> Mapping[str, Shown]:
        if owner not in self._registry:
            return _all(refs, "unknown", f"nobody publishes {owner!r} here")
        service = self._registry.find(owner)
        try:
            found = service.show(self._caller, refs, size)
        except Forbidden as error:
            return _all(refs, "forbidden", str(error))
        except ThreefoldError as error:
            return _all(refs, "unavailable", str(error))
        except Exception as error:
            if self._registry.is_own(owner):
                raise
            # An app's own failure is told where its objects would be; the others are shown all the same.
            return _all(refs, "unavailable", f"{type(service).__qualname__} failed: {error!r}")
        missing = _all([ref for ref in refs if str(ref) not in found], "gone", "its owner does not know it")
        return {**found, **missing}


def _all(refs: Sequence[Ref], standing: Standing, why: str) -> dict[str, Shown]:
    return {str(ref): Shown(str(ref), standing=standing, why=why) for ref in refs}
