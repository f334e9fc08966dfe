"""``python -m nodeflow`` is the command ``nodeflow``."""

import sys

from nodeflow.training._cli import main

sys.exit(main())
