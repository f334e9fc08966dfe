"""Sums over all edges straight from the parent graph, and full passes of models.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.propagation._exchange_plan import ExchangePlan
from nodeflow.propagation._full_pass import (
    FullPass as FullPass,
    check_features as check_features,
    check_out as check_out,
)
from nodeflow.propagation._propagation import Propagation

__all__ = ["ExchangePlan", "Propagation"]
