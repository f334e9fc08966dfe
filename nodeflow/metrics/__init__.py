"""Measures of predictions: ranks of links, and metrics by name."""

from nodeflow.metrics._links import TopLinks, rank_links, top_links, triples_of
from nodeflow.metrics._metric import Metric, named
from nodeflow.metrics._ranks import Ranks, auroc, average_precision, rank_among
from nodeflow.metrics._scorer import LinkScorer

__all__ = [
    "LinkScorer",
    "Metric",
    "Ranks",
    "TopLinks",
    "auroc",
    "average_precision",
    "named",
    "rank_among",
    "rank_links",
    "top_links",
    "triples_of",
]
