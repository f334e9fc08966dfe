"""How good predictions are: ranks of links, and metrics of node tasks."""

from nodeflow.metrics._rank_links import LinkScorer, rank_links
from nodeflow.metrics._ranks import Ranks
from nodeflow.metrics._triples import triples_of

__all__ = ["LinkScorer", "Ranks", "rank_links", "triples_of"]
