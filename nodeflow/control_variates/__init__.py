"""Control variates: history of activations, samplers and estimators that use it, and full passes
that renew it.
"""

from nodeflow.control_variates._estimators import (
    control_variate,
    control_variate_dropout,
    exact_sums,
    neighbor_sampling,
)
from nodeflow.control_variates._history import History
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
