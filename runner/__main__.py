"""`python -m runner` is the `toolcage` command."""

import sys

from runner.cli import main

sys.exit(main())
