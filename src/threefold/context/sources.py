"""What a context is made of: the realms as one scope sees them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from threefold.model.scope import Scope
from threefold.realms.cnv import Cnv
from threefold.realms.conv import Conv
from threefold.realms.conv.threads import Thread
from threefold.realms.doc import Doc
from threefold.realms.mem import Mem


class Sources(NamedTuple):
    """The realms of one scope, for reading. Nothing of another scope can be reached through them."""

    scope: Scope
    conv: Conv
    mem: Mem
    doc: Doc
    cnv: Cnv
    thread: Callable[[str], Thread]
    clock: Callable[[], datetime]
