"""How a store is served."""

from __future__ import annotations

from dataclasses import dataclass

from threefold.model.scope import Scope

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Settings:
    """How a store is served.

    `local` is who comes without a token, on this machine alone; None where everyone needs one. `hosts` are the names
    that the server may be called by beside those of this machine; without any, whoever has a token may call it by all.

    A JSON body has at most `json_bytes`, a document `file_bytes`, a history that is imported `import_bytes`. A request
    takes at most `seconds`, one that moves files `long_seconds`. `concurrent` requests are taken at once, of which
    `threads` work, and as many move files; `rate` is how many a token may make in a minute, None for any number.
    `streams` of lanes are open at once, `own_streams` with one token, and `connections` in all.

    `lanes` are the conversations in which a turn may run at once, `user_lanes` those of one user, `waiting` what may
    wait in each. A turn whose process died is another's after `lease` seconds.
    """

    local: Scope | None = None
    hosts: tuple[str, ...] = ()
    json_bytes: int = 1 * _MIB
    file_bytes: int = 64 * _MIB
    import_bytes: int = 1024 * _MIB
    seconds: float = 30.0
    long_seconds: float = 900.0
    concurrent: int = 200
    # Python computes in one thread at a time: more take turns, and each search takes longer (benchmarks/serve.py).
    threads: int = 4
    rate: int | None = None
    streams: int = 200
    own_streams: int = 30
    connections: int = 500
    lanes: int = 8
    user_lanes: int = 4
    waiting: int = 20
    lease: float = 30.0
