"""Control variates: history of activations, samplers and estimators that use it, and full passes that renew it.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.control_variates._estimators import (
    control_variate,
    control_variate_dropout,
    exact_sums,
    neighbor_sampling,
)
from nodeflow.control_variates._history import History, HistoryOptions as HistoryOptions
from nodeflow.control_variates._sampler import ControlVariateSampler
from nodeflow.control_variates._updater import Updater

__all__ = [
    "ControlVariateSampler",
    "History",
    "Updater",
    "control_variate",
    "control_variate_dropout",
    "exact_sums",
    "neighbor_sampling",
]
