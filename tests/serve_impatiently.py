"""`threefold`, whose turns are taken over soon after their process died."""

import sys
from functools import partial

from threefold.surfaces import http
from threefold.surfaces.cli.main import process

if __name__ == "__main__":
    http.Settings = partial(http.Settings, lease=6.0)
    sys.exit(process())
