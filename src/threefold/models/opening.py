"""Which chat model a setting means. Each wire is imported when it is chosen."""

from __future__ import annotations

from typing import Any, Final

from threefold.errors import InvalidInput
from threefold.models.address import base_of, checked_key, checked_model
from threefold.ports import ChatModel

ANTHROPIC: Final = "anthropic"
_ADDRESSES: Final = ("http://", "https://")
# Where an address ends so, it is Anthropic's wire that is spoken there.
_MESSAGES: Final = "/messages"


def check_chat(chosen: ChatModel | str | None, model: str | None = None, key: str | None = None) -> None:
    """See that the settings go together; nothing is imported and nothing asked.

    Raises:
        InvalidInput: the name is unknown, or an argument is malformed or does not go with it.
    """
    if not isinstance(chosen, str):
        _refuse_rest(chosen, model, key)
    elif chosen.startswith(_ADDRESSES):
        base_of(chosen)
        checked_model(model)
        checked_key(key)
    elif chosen == ANTHROPIC:
        checked_model(model)
        if checked_key(key) is None:
            raise InvalidInput("chat 'anthropic' needs chat_key (THREEFOLD_CHAT_KEY)")
    else:
        shown = f"{chosen.partition('://')[0]}://…" if "://" in chosen else repr(chosen[:100])
        raise InvalidInput(f"chat {shown} is unknown; give 'anthropic', http(s)://…, None or a ChatModel")


def open_chat(chosen: ChatModel | str | None, model: str | None = None, key: str | None = None) -> ChatModel | None:
    """`"anthropic"`, the address of a server, a `ChatModel` as it is, or None.

    An address speaks OpenAI's `/v1/chat/completions`, as most servers do; one that ends in `/messages` Anthropic's.
    `model` names the model, `key` is the server's.

    Raises:
        InvalidInput: as `check_chat`.
    """
    check_chat(chosen, model, key)
    if not isinstance(chosen, str):
        return chosen
    if chosen == ANTHROPIC or chosen.rstrip("/").endswith(_MESSAGES):
        from threefold.models.anthropic import PUBLIC, AnthropicModel

        return AnthropicModel(model or "", key, PUBLIC if chosen == ANTHROPIC else chosen)
    from threefold.models.openai import OpenAIModel

    return OpenAIModel(chosen, model or "", key)


def _refuse_rest(chosen: Any, model: str | None, key: str | None) -> None:
    given = [name for name, value in (("chat_model", model), ("chat_key", key)) if value is not None]
    if given:
        what = "chat None" if chosen is None else "a chat model that is made already"
        raise InvalidInput(f"{', '.join(given)}: not for {what}; leave out, or give http(s)://… as chat")
    if chosen is not None and not all(hasattr(chosen, name) for name in ("name", "chat", "stream", "close")):
        raise InvalidInput(f"chat {chosen!r} lacks name, chat, stream or close; see threefold.ports.ChatModel")
