"""What may be given to somebody who acts for a user. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from threefold.errors import InvalidInput

READER: Final = ("*:read", "mem:propose", "cnv:propose")
"""What is given where nothing else is said: read everything, suggest."""
_GRANT: Final = re.compile(r"(\*|[a-z][a-z0-9_-]*):(read|propose|write)")


def check_grants(grants: Collection[str], name: str = "grants") -> frozenset[str]:
    """The grants, if each is one.

    Raises:
        InvalidInput: one is none, or there is none.
    """
    if isinstance(grants, str) or not grants:
        raise InvalidInput(f"{name} must be a list such as ['mem:read'], or None for all of them")
    for each in grants:
        if not isinstance(each, str) or not _GRANT.fullmatch(each):
            raise InvalidInput(f"{name}: {each!r} is none; write NAMESPACE:read, :propose or :write, such as mem:read")
    return frozenset(grants)
