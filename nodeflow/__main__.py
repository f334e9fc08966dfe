"""``python -m nodeflow`` is the command ``nodeflow``."""

import sys

from nodeflow.cli import main

sys.exit(main())
