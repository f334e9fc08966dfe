"""The command ``nodeflow``, which is ``python -m nodeflow`` too."""

from __future__ import annotations

import os
import sys

from nodeflow._core.base import waiting


def main() -> int:
    """Run the command in this process, whose threads soon sleep when they wait, unless a variable
    says otherwise.
    """
    if not waiting.is_chosen():
        os.environ.update(waiting.SHORT)  # before torch is imported
    from nodeflow.training._cli import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
