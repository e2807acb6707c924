"""What references to memories name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from threefold.errors import Forbidden, InvalidInput, NotFound
from threefold.model.memory import Memory
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown


def memory_ref(ref: ObjectRef) -> ObjectRef:
    """Return a reference to a memory.

    Raises:
        InvalidInput: it names something else.
    """
    if ref.namespace != "mem":
        raise InvalidInput(f"reference {ref} names no memory; give one that begins with mem:record:")
    return ref


def resolved(record: Memory) -> Resolved:
    """A memory as the object that a reference names."""
    text = f"{record.memory}\n{record.context}" if record.context else record.memory
    return Resolved(record.ref, "memory", record.as_json(), text, title=record.memory, at=record.touched)


def show(refs: Sequence[ObjectRef], find: Callable[[str], Memory], size: int) -> Mapping[str, Shown]:
    """What references name, by reference; `find` gives a memory by its id, or raises."""
    shown = {}
    for ref in refs:
        try:
            record = find(memory_ref(ref).id)
        except (NotFound, Forbidden) as error:
            shown[str(ref)] = Shown.missing(str(ref), error)
        else:
            more = {"layer": record.layer, "status": record.status}
            shown[str(ref)] = replace(resolved(record).shown(size), more=more)
    return shown
