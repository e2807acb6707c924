"""`python -m threefold` is the command line."""

import sys

from threefold.surfaces.cli.main import process

sys.exit(process())
