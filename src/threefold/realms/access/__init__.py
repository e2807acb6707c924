"""Who may come in over a network, and requests that are done once however often they come."""

from threefold.realms.access.requests import Requests
from threefold.realms.access.tokens import Made, Token, Tokens

__all__ = ["Made", "Requests", "Token", "Tokens"]
