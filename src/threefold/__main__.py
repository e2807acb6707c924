"""`python -m threefold` is the command line."""

import sys

from threefold.surfaces.cli.main import main

sys.exit(main())
