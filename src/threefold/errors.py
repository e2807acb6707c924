"""The error tree. Every error a caller can meet is a `ThreefoldError`; driver errors never leak.

A message says what was wrong with which argument and how to mend it.
"""

from __future__ import annotations


class ThreefoldError(Exception):
    """Base of every error that Threefold raises on purpose."""


class InvalidInput(ThreefoldError, ValueError):
    """An argument is malformed; the message names it and the mend."""


class NotFound(ThreefoldError, LookupError):
    """No such object for this caller."""


class Expired(NotFound):
    """The object's time to live has run out. Told only to its owner."""


class Purged(NotFound):
    """The object was removed on purpose. Told only to its owner."""


class Forbidden(ThreefoldError):
    """The object exists and belongs to the caller's user, but this handle may not see it."""


class Conflict(ThreefoldError):
    """The write contradicts what is stored already; nothing was changed."""


class TooMany(Conflict):
    """Too much waits or runs already; once some of it has ended, the same is taken."""


class Unavailable(ThreefoldError):
    """A store, file system or model could not be reached or is busy; trying again may help."""


class BytesGone(Unavailable):
    """The bytes of a file were removed between being put and the commit; putting and committing again mends it."""


class IntegrityError(ThreefoldError):
    """Stored bytes are not what was recorded (hash or structure does not match)."""


class EngineFailed(ThreefoldError):
    """A context engine raised something, or gave something else than a context within the budget."""


class AgentFailed(ThreefoldError):
    """An agent, or a tool of one, raised something, or gave something else than text."""


class Steered(AgentFailed):
    """The person interrupted the agent; let it pass, and the agent is begun anew with what they said."""
