"""Graphs, features and learned rows that are larger than memory."""

from nodeflow.storage._orders import Order as Order
from nodeflow.storage._orders import beta_order as beta_order
from nodeflow.storage._orders import comet_order as comet_order
from nodeflow.storage._orders import dispersed_order as dispersed_order
from nodeflow.storage._orders import sequential_order as sequential_order

__all__ = ["Order", "beta_order", "comet_order", "dispersed_order", "sequential_order"]
