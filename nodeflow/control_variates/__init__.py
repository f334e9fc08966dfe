"""Control variates: history of activations, samplers and estimators that use it, and full passes that renew it."""

from nodeflow.control_variates.estimators import (
    control_variate,
    control_variate_dropout,
    exact_sums,
    neighbor_sampling,
)
from nodeflow.control_variates.history import History
from nodeflow.control_variates.sampler import ControlVariateSampler
from nodeflow.control_variates.updater import Updater
from nodeflow.propagation import Propagation

__all__ = [
    "ControlVariateSampler",
    "History",
    "Propagation",
    "Updater",
    "control_variate",
    "control_variate_dropout",
    "exact_sums",
    "neighbor_sampling",
]
