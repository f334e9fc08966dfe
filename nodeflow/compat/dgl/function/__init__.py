"""Built-in message and reduce functions: those of ``nodeflow.fn``, which have DGL's names and keywords too."""

from nodeflow.fn import *  # noqa: F403
from nodeflow.fn import __all__ as __all__
