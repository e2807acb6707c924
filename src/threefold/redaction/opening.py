"""Which rule of redaction a setting means. A named one is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from threefold.errors import InvalidInput, Unavailable
from threefold.ports import Redactor

RULES: Final = ("secrets", "secrets+personal")
"""Names that `Config.redact` knows."""

_NEEDED: Final = ("kingfisher_sdk", "phonenumbers")


def open_redactor(chosen: Callable[[str], str] | str | None) -> Redactor | None:
    """`"secrets"`, `"secrets+personal"`, the host's own function from text to text, or None.

    Raises:
        InvalidInput: the name is unknown. Unavailable: what finds secrets is not installed.
    """
    if chosen is None:
        return None
    if isinstance(chosen, str) and chosen in RULES:
        if any(find_spec(module) is None for module in _NEEDED):
            raise Unavailable(f"redact {chosen!r} is not installed; pip install 'threefold[redact]'")
        from threefold.redaction.detecting import Detector

        return Detector(personal=chosen == "secrets+personal")
    if isinstance(chosen, str) or not callable(chosen):
        known = ", ".join(map(repr, RULES))
        raise InvalidInput(f"redact {chosen!r} is unknown; give {known}, None, or a function from text to text")
    return _Own(chosen)


class _Own:
    """The host's own rule."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __call__(self, text: str, name: str = "") -> str:  # noqa: ARG002 - a rule of the host sees texts alone
        found = self._rule(text)
        if not isinstance(found, str):
            raise InvalidInput(f"redact must return text, not {type(found).__name__}")
        return found
