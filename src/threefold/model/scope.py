"""Who a call speaks for. No read or write happens without a scope."""

from __future__ import annotations

from dataclasses import dataclass, replace

from threefold.errors import InvalidInput

MAX_ID_BYTES = 1024
# The realm of conversations.
RECORD = "conv"
# What belongs to a user: the record with the summaries of its threads, curated memory, documents, boards.
PERSONAL = (RECORD, "thread", "mem", "doc", "cnv")


def check_id(value: object, name: str) -> str:
    """Return `value` if it is a usable identifier.

    Any Unicode text is an identifier, compared exactly, without normalisation. Refused are: what is not a `str`,
    empty or blank text, NUL (PostgreSQL cannot keep it), lone surrogates (they have no bytes), and over 1,024 bytes.

    Raises:
        InvalidInput: naming the argument `name` and the mend.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInput(f"{name} is empty; give a non-blank text, there is no 'everyone'")
    if "\x00" in value:
        raise InvalidInput(f"{name} contains a NUL character; remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{name} contains a lone surrogate, which has no bytes; remove it") from None
    if size > MAX_ID_BYTES:
        raise InvalidInput(f"{name} has {size} bytes; at most {MAX_ID_BYTES} are kept, use a shorter one")
    return value


@dataclass(frozen=True, slots=True)
class Scope:
    """The identity boundary: part of every stored key and of every statement.

    `tenant` and `user` say whose data it is. `app`, where set, narrows the handle to what that app recorded.
    `agent` labels what is recorded through the handle and is what `scope="agent"` searches. `realm` is which of the
    user's records are meant: `conv` is the record of conversations; nothing of one realm is seen in another.

    Raises:
        InvalidInput: where a part is not a usable identifier.
    """

    user: str
    tenant: str = "default"
    app: str | None = None
    agent: str | None = None
    realm: str = RECORD

    def __post_init__(self) -> None:
        check_id(self.tenant, "tenant")
        check_id(self.user, "user")
        check_id(self.realm, "realm")
        for name in ("app", "agent"):
            if getattr(self, name) is not None:
                check_id(getattr(self, name), name)

    @property
    def owner(self) -> Scope:
        """The same tenant, user and realm, not narrowed to an app or agent."""
        return replace(self, app=None, agent=None)

    @property
    def key(self) -> tuple[str, str, str]:
        """Tenant, user and realm: whose it is."""
        return self.tenant, self.user, self.realm

    @classmethod
    def of(cls, tenant: str, user: str, realm: str) -> Scope:
        """The owner with this key."""
        return cls(user, tenant, realm=realm)
