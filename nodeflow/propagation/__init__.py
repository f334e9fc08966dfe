"""Sums over all edges straight from the parent graph, and full passes of models."""

from nodeflow.propagation._propagation import Propagation as Propagation

__all__ = ["Propagation"]
