"""Sums over all edges straight from the parent graph, and full passes of models."""

from nodeflow.propagation._exchange_plan import ExchangePlan
from nodeflow.propagation._part import PartPropagation
from nodeflow.propagation._propagation import Propagation

__all__ = ["ExchangePlan", "PartPropagation", "Propagation"]
