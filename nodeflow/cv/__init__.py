"""Control variates: history of activations, samplers and estimators that use it, and full passes that renew it."""

from nodeflow.cv.estimators import control_variate, control_variate_dropout, neighbor_sampling
from nodeflow.cv.history import History
from nodeflow.cv.sampler import ControlVariateSampler
from nodeflow.cv.updater import Updater
from nodeflow.propagation import Propagation

__all__ = [
    "ControlVariateSampler",
    "History",
    "Propagation",
    "Updater",
    "control_variate",
    "control_variate_dropout",
    "neighbor_sampling",
]
