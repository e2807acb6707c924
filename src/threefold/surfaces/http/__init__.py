"""HTTP: every operation as a route, every reference as an address, tokens, uploads, MCP, and the pages.

`application(db, settings)` is the ASGI application; `serving.serve` runs it. Needs `pip install 'threefold[serve]'`.
"""

from threefold.surfaces.http.app import application
from threefold.surfaces.http.settings import Settings

__all__ = ["Settings", "application"]
