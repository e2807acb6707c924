"""MCP: every operation as a tool, every reference as a resource, in both eras of the protocol.

`serving(db, caller)` is the server object, for the SDK's client and for whatever transport; `stdio.serve` runs it over
standard input and output. Needs `pip install 'threefold[mcp]'`.
"""

from threefold.surfaces.mcp.opening import Opening
from threefold.surfaces.mcp.server import serving

__all__ = ["Opening", "serving"]
